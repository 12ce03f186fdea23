package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/config"
)

// load writes a configuration file and loads it.
func load(t *testing.T, text string) (config.File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lancerest.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(path)
}

// secretFile returns a reference to a file that holds a secret.
func secretFile(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file:" + path
}

// TestWrong: what is wrong with a file is said with its line, or its root, and what would be right; a secret is never repeated.
func TestWrong(t *testing.T) {
	t.Parallel()
	const s3 = "[[root]]\nlocation = 's3://lake/a'\n"
	const role = "role_arn = 'arn:aws:iam::1:role/x'\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"an unknown key", s3 + "regoin = 'x'\n", []string{"line 3", "root.regoin"}},
		{"two unknown keys", s3 + "[root.vend]\n" + role + "foo = 1\nbar = 2\n", []string{"line 5", "root.vend.foo", "line 6", "root.vend.bar"}},
		{"an unknown table", s3 + "[server]\nport = 1\n", []string{"line 3", "server"}},
		{"no TOML", "[[root]\n", []string{"line 1"}},
		{"a number for a text", "[[root]]\nlocation = 7\n", []string{"line 2"}},
		{"no duration", s3 + "[root.vend]\nduration = '3 parsecs'\n", []string{"line 4", "3 parsecs"}},
		{"a key said twice", s3 + "region = 'a'\nregion = 'b'\n", []string{"line 4", "region"}},
		{"nothing", "", []string{"[[root]]"}},
		{"no location", "[[root]]\nregion = 'x'\n", []string{"root 1", "no location"}},
		{"no storage", "[[root]]\nlocation = 'ftp://x/y'\n", []string{"root 1", "use file, s3, gs"}},
		{"no bucket", "[[root]]\nlocation = 's3:///y'\n", []string{"names no bucket"}},
		{"a URI with a slash too few", "[[root]]\nlocation = 's3:/lake/a'\n", []string{"root 1", "two slashes after s3:"}},
		{"a URI without slashes", "[[root]]\nlocation = 'GS:lake'\n", []string{"two slashes after GS:"}},
		{"a URI of a file with a slash too few", "[[root]]\nlocation = 'file:/lake'\n", []string{"file:///DIRECTORY"}},
		{"a scheme of another storage", "[[root]]\nlocation = 'hdfs:/lake'\n", []string{"two slashes after hdfs:"}},
		{"a home directory", "[[root]]\nlocation = '~/lake'\n", []string{"in the place of ~"}},
		{"somebody's home directory", "[[root]]\nlocation = '~me/lake'\n", []string{"in the place of ~"}},
		{"the same root twice", s3 + "[[root]]\nlocation = 'S3A://lake//a/'\n", []string{"root 2", "s3://lake/a", "said before"}},
		{"no such default", "default = 's3://lake/b'\n" + s3, []string{"s3://lake/b", "none of the roots"}},
		{"a setting of another storage", s3 + "account = 'x'\n", []string{"s3://lake/a", "account is for az"}},
		{"settings for a directory", "[[root]]\nlocation = '/srv'\nregion = 'x'\npath_style = false\n", []string{"/srv", "region is for s3", "path_style is for s3"}},
		{"a setting of another storage, for keys", "[[root]]\nlocation = 'gs://lake'\n[root.vend]\n" + role, []string{"vend.role_arn is for s3"}},
		{"no such mode", s3 + "credentials = 'vended'\n", []string{"vended", "none, static, vend and client"}},
		{"keys for a directory", "[[root]]\nlocation = '/srv'\ncredentials = 'static'\n", []string{"lies on this machine"}},
		{"no role", s3 + "credentials = 'vend'\n", []string{"vend.role_arn", "--sts-role-arn"}},
		{"no role's name", s3 + "[root.vend]\nrole_arn = 'x'\n", []string{"arn:aws:iam::ACCOUNT:role/NAME"}},
		{"settings for another mode", s3 + "credentials = 'client'\n[root.vend]\n" + role, []string{"for credentials vend", "has client"}},
		{"a life too long", s3 + "[root.vend]\n" + role + "duration = '13h'\n", []string{"13h0m0s", "12h"}},
		{"a life too short", s3 + "[root.vend]\n" + role + "duration = '5m'\n", []string{"5m0s", "above vend.min_life"}},
		{"clients come too early", s3 + "[root.vend]\n" + role + "refresh_offset = '5m'\n", []string{"vend.refresh_offset", "below vend.min_life"}},
		{"a life below nothing", s3 + "[root.vend]\n" + role + "min_life = '-1s'\n", []string{"above 0"}},
		{"no such grant", s3 + "[root.vend]\n" + role + "grant = 'write'\n", []string{"read and read-write"}},
		{"an endpoint that is none", s3 + "endpoint = 'localhost:9000'\n", []string{"endpoint", "https://s3.example.org"}},
		{"an endpoint with a password", s3 + "endpoint = 'https://me:hush@host'\n", []string{"no user"}},
		{"an endpoint without TLS", s3 + "endpoint = 'http://host'\n", []string{"allow_http"}},
		{"a token service without TLS", s3 + "[root.vend]\nsts_endpoint = 'http://host'\n" + role, []string{"vend.sts_endpoint", "allow_http"}},
		{"a secret in the file", s3 + "access_key_id = 'hush'\n", []string{"line 3", "env:NAME or file:PATH"}},
		{"a secret that is not there", s3 + "access_key_id = 'env:LANCEREST_NOT_SET'\nsecret_access_key = 'file:/nowhere'\n", []string{"env:LANCEREST_NOT_SET", "file:/nowhere"}},
		{"half a pair of keys", s3 + "access_key_id = '" + secretFile(t, "hush") + "'\n", []string{"go together"}},
		{"a token without keys", s3 + "session_token = '" + secretFile(t, "hush") + "'\n", []string{"session_token goes with"}},
		{"everything at once", s3 + "region = 'x'\ncredentials = 'nothing'\nendpoint = 'x'\naccount = 'x'\n", []string{"nothing", "endpoint", "account"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.text)
			if err == nil {
				t.Fatal("nothing is wrong with it")
			}
			for _, words := range append(c.want, "lancerest.toml") {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%v\ndoes not say %q", err, words)
				}
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("%v\nshows a secret", err)
			}
		})
	}
	if _, err := config.Load("/nowhere/x.toml"); err == nil || !strings.Contains(err.Error(), "/nowhere/x.toml") {
		t.Errorf("%v, want an error that names the file", err)
	}
}

// TestRight: what a file says is what roots are opened with, and what it leaves out has defaults.
func TestRight(t *testing.T) {
	t.Parallel()
	file, err := load(t, `
default = "s3a://lake//b/"
[[root]]
location = "/srv/tables"
[[root]]
location = "s3://lake/a"
[[root]]
location = "s3://lake/b"
endpoint = "http://127.0.0.1:9000"
allow_http = true
path_style = false
access_key_id = "`+secretFile(t, "id\n")+`"
secret_access_key = "`+secretFile(t, " hush ")+`"
[root.vend]
role_arn = "arn:aws:iam::1:role/x"
grant = "read"
duration = "20m"
min_life = "10m"
`)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := config.Combine(file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"s3://lake/b", "s3://lake/a", "/srv/tables"}, locations(roots)); diff != "" {
		t.Errorf("roots (-want +got):\n%s", diff)
	}
	b := roots[0]
	if secret, err := b.SecretAccessKey.Read(); secret != "hush" || err != nil {
		t.Errorf("the secret is %q, %v; want it without white space", secret, err)
	}
	if shown := fmt.Sprintf("%v %+v %s", b, b, b.SecretAccessKey); strings.Contains(shown, "hush") {
		t.Errorf("the root is shown as %s", shown)
	}
	want := access.Options{Mode: access.Vend, Grant: access.Read, MinLife: 10 * time.Minute, RefreshOffset: 5 * time.Minute}
	if diff := cmp.Diff(want, b.Options(), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Own" }, cmp.Ignore())); diff != "" || b.Vend.Life() != 20*time.Minute {
		t.Errorf("keys for %s (-want +got):\n%s", b.Vend.Life(), diff)
	}
	for i, mode := range []access.Mode{access.Vend, access.Client, access.None} {
		if roots[i].Mode() != mode {
			t.Errorf("%s: %s, want %s", roots[i].Location, roots[i].Mode(), mode)
		}
	}
}

func locations(roots []config.Root) []string {
	var all []string
	for _, r := range roots {
		all = append(all, r.Location)
	}
	return all
}

// TestFlags: flags name roots of the file, or further ones, and say what the clients of the first are given.
func TestFlags(t *testing.T) {
	t.Parallel()
	file := config.File{Roots: []config.Root{
		{Location: "s3://lake/a", Region: "here", Vend: config.Vending{RoleARN: "arn:aws:iam::1:role/file"}},
		{Location: "s3://lake/b", Credentials: "none"},
	}}
	for _, c := range []struct {
		name  string
		file  config.File
		flags config.Flags
		want  []string
		mode  access.Mode
		role  string
		fails string
	}{
		{name: "nothing", fails: "no root is named"},
		{name: "a root", flags: config.Flags{Root: "/srv"}, want: []string{"/srv"}, mode: access.None},
		{name: "an object store", flags: config.Flags{Root: "s3://x", Allow: []string{"/srv", "s3://x/"}}, want: []string{"s3://x", "/srv"}, mode: access.Client},
		{name: "the file", file: file, want: []string{"s3://lake/a", "s3://lake/b"}, mode: access.Vend, role: "arn:aws:iam::1:role/file"},
		{name: "one of the file's", file: file, flags: config.Flags{Root: "s3://lake/b/"}, want: []string{"s3://lake/b", "s3://lake/a"}, mode: access.None},
		{name: "one more", file: file, flags: config.Flags{Root: "gs://c"}, want: []string{"gs://c", "s3://lake/b", "s3://lake/a"}, mode: access.Client},
		{name: "a mode", file: file, flags: config.Flags{Credentials: "static"}, want: []string{"s3://lake/a", "s3://lake/b"}, mode: access.Static},
		{name: "a role", flags: config.Flags{Root: "s3://x", STSRoleARN: "arn:aws:iam::1:role/flag"}, want: []string{"s3://x"}, mode: access.Vend, role: "arn:aws:iam::1:role/flag"},
		{name: "a role for a mode", file: file, flags: config.Flags{Root: "s3://lake/b", Credentials: "vend", STSRoleARN: "arn:aws:iam::1:role/flag"}, want: []string{"s3://lake/b", "s3://lake/a"}, mode: access.Vend, role: "arn:aws:iam::1:role/flag"},
		{name: "a mode without its role", flags: config.Flags{Root: "s3://x", Credentials: "vend"}, fails: "--sts-role-arn"},
		{name: "a role without its mode", flags: config.Flags{Root: "s3://x", Credentials: "client", STSRoleARN: "arn:aws:iam::1:role/x"}, fails: "for credentials vend"},
		{name: "a role for a directory", flags: config.Flags{Root: "/srv", STSRoleARN: "arn:aws:iam::1:role/x"}, fails: "vend.role_arn is for s3"},
		{name: "a mode for a directory", flags: config.Flags{Root: "/srv", Credentials: "client"}, fails: "lies on this machine"},
		{name: "a container in two spellings", flags: config.Flags{Root: "az://lake/a", Allow: []string{"abfss://lake@account.dfs.core.windows.net/b"}}, fails: "use one of the two"},
		{name: "two containers", flags: config.Flags{Root: "az://lake/a", Allow: []string{"abfss://sea@account.dfs.core.windows.net/b"}}, want: []string{"az://lake/a", "abfss://sea@account.dfs.core.windows.net/b"}, mode: access.Client},
		{name: "a URI with a slash too few", flags: config.Flags{Root: "s3:/x"}, fails: "two slashes after s3:"},
		{name: "one to allow", flags: config.Flags{Root: "/srv", Allow: []string{"s3:/x"}}, fails: "two slashes after s3:"},
		{name: "a home directory to allow", flags: config.Flags{Root: "/srv", Allow: []string{"~/x"}}, fails: "in the place of ~"},
		{name: "directories of such names", flags: config.Flags{Root: "./s3:/x", Allow: []string{"./~", "C:/x", "a:b"}}, want: []string{"./s3:/x", "./~", "C:/x", "a:b"}, mode: access.None},
		{name: "a root that is none", flags: config.Flags{Root: "ftp://x"}, fails: "no store here serves"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			roots, err := config.Combine(c.file, c.flags)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%v, want an error that says %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, locations(roots)); diff != "" {
				t.Errorf("roots (-want +got):\n%s", diff)
			}
			if roots[0].Mode() != c.mode || roots[0].Vend.RoleARN != c.role {
				t.Errorf("clients are given %s by role %q, want %s by %q", roots[0].Mode(), roots[0].Vend.RoleARN, c.mode, c.role)
			}
		})
	}
	if file.Roots[0].Location != "s3://lake/a" || file.Roots[0].Credentials != "" {
		t.Errorf("the file was changed: %+v", file.Roots)
	}
}
