// Package objstore is the contract of the storage that tables live in: get, look, put if absent, conditional delete, list.
// Implementations stand in folders below; package objtest holds the suite that every one of them passes and a wrapper that
// fails, delays and loses answers.
//
// Keys are raw, slash-separated paths relative to the store's root, with no leading slash and no percent-encoding: the form that
// Lance clients send and expect as manifest_path (client contract, fact 42). For a local store the root is "/".
// Implementations refuse keys that are empty, absolute, or hold "." or ".." segments, empty segments or NUL, with ErrInvalidKey.
//
// What does not live here: which locations are allowed, what an object means, and retries, which only the caller can judge.
//
// # Writing a new backend
//
// A backend is one folder with one type and its tests; a cloud's SDK is imported nowhere else. In order:
//
//  1. Probe the server before trusting it: a conditional put, a conditional delete, and each of them 16 times at once. Servers
//     exist that answer 200 and overwrite. Never publish with a conditional copy: most ignore its condition. The running server
//     does so at its start (Try), so be honest with it: ask the store for every condition, with any ETag, and answer
//     ErrUnsupported where the store says that it knows none. Implement Plain if that can be.
//  2. Begin every method with CheckKey or CheckPrefix and the context. Then pass the key on as it is; the SDK or the URL does the
//     escaping, once.
//  3. Translate errors in one function, by status and code, never by text. Only a proven absence is ErrNotFound: not a timeout,
//     not a bucket that is missing, not a 404 without a body from a proxy. 401 and 403 are ErrDenied. A failed condition is 412
//     on S3 and GCS, 409 on Azure and sometimes 304: it is ErrExists in PutIfAbsent, ErrChanged in PutIf and DeleteIf.
//  4. Settle unknown outcomes where the store lets you. After a retried PutIfAbsent "exists" may be your own first try, which the
//     caller cannot know: a mark of the put's own in the object's metadata tells. Where there is none leave it as ErrExists: the
//     commit compares bytes (C6). Switch the SDK's own retries off where they hide this.
//  5. Describe an object alike in every method, with the ETag exactly as the store gives it, quotes included.
//  6. Run objtest.Run in the folder's tests, on the real server if one can be started, with a fresh prefix for each store. Name
//     and explain each exception.
//  7. Test beside it what only this backend has: credentials that end, throttling, paging of lists.
//
// # Common mistakes
//
//   - Looking first and putting then. The look may save work; the condition decides.
//   - ErrChanged for a DeleteIf that lost its answer: a retry finds nothing and would be told "changed", which it can be. That is
//     right as long as the caller asks what is there now instead of concluding who removed it.
//   - An ETag that two different objects of one name can share, such as one made of the size and a clock that stands still: a
//     late DeleteIf then removes the wrong one (C10). A digest of the bytes is good enough: equal bytes are one object to the
//     commit (C5).
//   - Walking directories by name: "a-b" comes before "a/x" in bytewise order of keys, and "a/" must not list "a-b/".
//   - Keeping the caller's slice, or handing out one's own.
//   - Loading a whole listing before the first yield, or going on after yield returned false.
//   - Counting a directory, a marker object that ends in "/", or a delete marker as an object.
//   - Answering a put before it is durable, or ErrExists before the other's put is.
//   - Letting the end of a context break off half of an effect: check it before, not in between.
package objstore
