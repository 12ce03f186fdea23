// Does the same with LanceDB's TypeScript SDK on a server and in a local directory, and prints for each step what both answered:
//
//     node lancedb.mjs http://127.0.0.1:2333 DIRECTORY TABLE
//
// Prints one line of JSON a step: {"step": ..., "remote": ..., "local": ...}; an error is {"error": its text}.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The SDK is installed beside the tests' other tools, where import does not look.
const require = createRequire(`${process.env.LANCEREST_NODE_SDK}/package.json`);
const lancedb = await import(pathToFileURL(require.resolve("@lancedb/lancedb")).href);

const [url, directory, name] = process.argv.slice(2);
const { Index } = lancedb;

const row = (id) => ({ id, vector: [id / 300, 1 - id / 300, 0.5], text: `${id % 2 ? "river stone" : "cloud"} ${id}` });
const rows = (first, count) => [...Array(count).keys()].map((i) => row(first + i));
const near = [0.1, 0.9, 0.5];

// What is in the table, in the order of the ids.
const content = async (t) => (await t.query().limit(5000).toArray()).map((r) => ({ ...r, vector: [...r.vector] })).sort((a, b) => a.id - b.id);
const ids = async (query) => (await query.toArray()).map((r) => r.id);
const counted = ({ version, ...counts }) => counts;

const steps = {
  create: async ({ db }) => (await db.createTable(name, rows(0, 300))).name,
  again: async ({ db }) => (await db.createTable(name, rows(0, 1), { existOk: true })).countRows(),
  schema: async ({ t }) => (await t.schema()).fields.map((f) => `${f.name}: ${f.type}`),
  count: ({ t }) => t.countRows(),
  countSome: ({ t }) => t.countRows("id < 7 OR text LIKE 'river%'"),
  add: ({ t }) => t.add(rows(300, 5)).then(counted),
  nearest: ({ t }) => ids(t.search(near).limit(5)),
  cosine: ({ t }) => ids(t.vectorSearch(near).distanceType("cosine").limit(5)),
  filtered: ({ t }) => ids(t.vectorSearch(near).where("id > 100").limit(5)),
  bounded: ({ t }) => ids(t.vectorSearch(near).distanceRange(0.0, 0.01).limit(50)),
  scan: ({ t }) => t.query().where("id > 297").select(["id"]).toArray(),
  computed: ({ t }) => t.query().where("id < 3").select({ twice: "id * 2" }).toArray(),
  update: ({ t }) => t.update({ where: "id = 1", values: { text: "it's new" } }).then(counted),
  updateSql: ({ t }) => t.update({ where: "id < 5", valuesSql: { text: "upper(text)" } }).then(counted),
  delete: ({ t }) => t.delete("id = 2").then(counted),
  merge: ({ t }) => t.mergeInsert("id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute([row(5), row(1000)]).then(counted),
  mergeDelete: ({ t }) => t.mergeInsert("id").whenNotMatchedBySourceDelete({ where: "id > 302" }).execute(rows(0, 300)).then(counted),
  content: ({ t }) => content(t),
  fts: ({ t }) => t.createIndex("text", { config: Index.fts() }),
  waitForIndex: async ({ t }) => (await t.waitForIndex(["text_idx"], 30)) ?? "there",
  words: async ({ t }) => (await ids(t.search("cloud", "fts").limit(500))).sort((a, b) => a - b),
  match: async ({ t }) => (await ids(t.query().fullTextSearch(new lancedb.MatchQuery("rivr", "text", { fuzziness: 1 })).limit(500))).sort((a, b) => a - b),
  btree: ({ t }) => t.createIndex("id", { config: Index.btree() }),
  bitmap: ({ t }) => t.createIndex("text", { config: Index.bitmap(), name: "bits" }),
  vectorIndex: ({ t }) => t.createIndex("vector", { config: Index.ivfFlat({ numPartitions: 1, distanceType: "cosine" }) }),
  indices: async ({ t }) => (await t.listIndices()).map((i) => [i.name, i.indexType, i.columns]).sort(),
  indexStats: async ({ t }) => {
    const { numIndexedRows, numUnindexedRows, distanceType } = await t.indexStats("vector_idx");
    return { numIndexedRows, numUnindexedRows, distanceType };
  },
  byIndex: ({ t }) => ids(t.vectorSearch(near).distanceType("cosine").limit(5)),
  dropIndex: ({ t }) => t.dropIndex("id_idx"),
  addColumns: ({ t }) => t.addColumns([{ name: "twice", valueSql: "id * 2" }]).then(() => content(t)),
  alterColumns: ({ t }) => t.alterColumns([{ path: "twice", rename: "double" }]).then(() => content(t)),
  dropColumns: ({ t }) => t.dropColumns(["double"]).then(() => content(t)),
  checkout: async ({ t }) => {
    await t.checkout(1);
    return t.countRows();
  },
  restore: async ({ t }) => {
    await t.restore();
    return content(t);
  },
  tags: async ({ t }) => {
    const tags = await t.tags();
    await tags.create("first", 1);
    return tags.getVersion("first");
  },
  moreTags: async ({ t }) => {
    const tags = await t.tags();
    await tags.update("first", 2);
    const found = [await tags.getVersion("first"), Object.keys(await tags.list())];
    await t.checkout("first");
    const rows = await t.countRows();
    await t.checkoutLatest();
    await tags.delete("first");
    return [...found, rows, Object.keys(await tags.list())];
  },
  versions: async ({ t }) => [(await t.listVersions()).length > 5, (await t.version()) > 5],
  stats: async ({ t }) => (await t.stats()).numRows,
  plans: async ({ t }) => {
    const query = t.vectorSearch(near).limit(3);
    return [(await query.explainPlan(true)).includes("KNN"), (await query.analyzePlan()).includes("output_rows")];
  },
  page: ({ t }) => ids(t.query().where("id >= 5").limit(4).offset(3)),
  rowIds: async ({ t }) => Object.keys((await t.query().where("id = 7").withRowId().toArray())[0]).sort(),
  takeRowIds: async ({ t }) => {
    const [found] = await t.query().where("id = 7").withRowId().toArray();
    return ids(t.takeRowIds([found._rowid]));
  },
  postfilter: ({ t }) => ids(t.vectorSearch(near).where("id % 2 = 0").postfilter().limit(20)),
  probes: ({ t }) => ids(t.vectorSearch(near).nprobes(5).refineFactor(2).ef(30).bypassVectorIndex().limit(5)),
  fast: ({ t }) => ids(t.vectorSearch(near).distanceType("cosine").fastSearch().limit(5)),
  boolean: async ({ t }) => {
    const { BooleanQuery, MatchQuery, Occur } = lancedb;
    const query = new BooleanQuery([[Occur.Must, new MatchQuery("river", "text")], [Occur.MustNot, new MatchQuery("stone", "text")]]);
    return (await ids(t.query().fullTextSearch(query).limit(500))).sort((a, b) => a - b);
  },
  arrow: async ({ t }) => (await t.query().where("id < 4").toArrow()).numRows,
  empty: async ({ db, t }) => {
    const empty = await db.createEmptyTable(`${name}_empty`, await t.schema());
    const before = await empty.countRows();
    await empty.add(rows(0, 2));
    const names = (await db.tableNames({ limit: 1000 })).filter((n) => n.startsWith(name));
    await db.dropTable(`${name}_empty`);
    return [before, names];
  },
  takeOffsets: async ({ t }) => (await t.takeOffsets([2, 7]).toArray()).map((r) => r.id),
  overwrite: async ({ db }) => (await db.createTable(name, rows(7, 3), { mode: "overwrite" })).countRows(),
  addOverwrite: async ({ db }) => {
    const t = await db.openTable(name);
    await t.add(rows(0, 2), { mode: "overwrite" });
    return content(t);
  },
  names: async ({ db }) => (await db.tableNames()).includes(name),
  dropTable: async ({ db }) => {
    await db.dropTable(name);
    return (await db.tableNames()).includes(name);
  },
};

// What a local directory does not have: on the server alone, with what it must answer.
const alone = {
  namespaces: [async ({ db }) => {
    const ns = [`${name}_ns`];
    await db.createNamespace(ns);
    await db.createTable("within", rows(0, 3), ns);
    const there = [(await db.listNamespaces()).namespaces.includes(ns[0]), await db.tableNames(ns), await (await db.openTable("within", ns)).countRows()];
    await db.describeNamespace(ns);
    await db.dropTable("within", ns);
    await db.dropNamespace(ns);
    return [...there, (await db.listNamespaces()).namespaces.includes(ns[0])];
  }, [true, ["within"], 3, false]],
  rename: [async ({ db }) => {
    await db.createTable(`${name}_old`, rows(0, 4));
    await db.renameTable(`${name}_old`, `${name}_new`);
    const old = (await db.tableNames()).includes(`${name}_old`); // until it lists tables, the SDK asks for the new one by the old name
    const count = await (await db.openTable(`${name}_new`)).countRows();
    await db.dropTable(`${name}_new`);
    return [count, old];
  }, [4, false]],
  branches: [async ({ db }) => {
    const t = await db.createTable(`${name}_branched`, rows(0, 4));
    const branches = await t.branches();
    const b = await branches.create("work");
    await b.add(rows(4, 2));
    const counts = [await t.countRows(), await (await branches.checkout("work")).countRows(), Object.keys(await branches.list())];
    await branches.delete("work");
    return [...counts, Object.keys(await branches.list())];
  }, [4, 6, ["work"], []]],
  fieldMetadata: [async ({ db }) => {
    const t = await db.openTable(`${name}_branched`);
    const { version } = await t.updateFieldMetadata([{ path: "id", metadata: { unit: "none" } }]);
    const field = (await (await db.openTable(`${name}_branched`)).schema()).fields.find((f) => f.name === "id");
    return [version === (await t.version()), field.metadata.get("unit")];
  }, [true, "none"]],
  jobs: [async ({ db }) => [await db.listJobs(), await db.getJob("00000000-0000-0000-0000-000000000000")], [[], null]],
};

const sides = {
  remote: { db: await lancedb.connect("db://lake", { apiKey: "sk_test", hostOverride: url, region: "local" }) },
  local: { db: await lancedb.connect(directory) },
};
const plain = (_, value) => (typeof value === "bigint" ? Number(value) : value);

for (const [step, run] of Object.entries(steps)) {
  const answers = { step };
  for (const [side, at] of Object.entries(sides)) {
    try {
      answers[side] = (await run(at)) ?? null;
    } catch (err) {
      answers[side] = { error: String(err) };
    }
    if (step === "create") at.t = await at.db.openTable(name);
  }
  console.log(JSON.stringify(answers, plain));
}

for (const [step, [run, local]] of Object.entries(alone)) {
  const answers = { step, local };
  try {
    answers.remote = await run(sides.remote);
  } catch (err) {
    answers.remote = { error: String(err) };
  }
  console.log(JSON.stringify(answers, plain));
}
