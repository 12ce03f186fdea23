package azure_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/objstore/azure"
	"github.com/lancerest/lancerest/internal/objstore/azure/azuretest"
)

// clean takes everything about Azure out of the environment until the test ends.
func clean(t *testing.T) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "AZURE_") || strings.HasPrefix(name, "AZURITE_") {
			t.Setenv(name, "")
		}
	}
}

// TestEnvironment has the names that Lance's clients read.
func TestEnvironment(t *testing.T) {
	clean(t)
	const key = azuretest.Key
	for name, c := range map[string]struct {
		options azure.Options
		env     map[string]string
		want    azure.Settings // without a Credential, of which only the presence is compared
		login   bool
	}{
		"account and key": {
			env:  map[string]string{"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_ACCOUNT_KEY": key},
			want: azure.Settings{Account: "acme", Endpoint: "https://acme.blob.core.windows.net", AccountKey: key},
		},
		"the key's other names": {
			env:  map[string]string{"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_ACCESS_KEY": key},
			want: azure.Settings{Account: "acme", Endpoint: "https://acme.blob.core.windows.net", AccountKey: key},
		},
		"a signature": {
			env:  map[string]string{"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_SAS_TOKEN": "?sv=1&sig=2"},
			want: azure.Settings{Account: "acme", Endpoint: "https://acme.blob.core.windows.net", SAS: "sv=1&sig=2"},
		},
		"a token": {
			env:   map[string]string{"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_TOKEN": "t"},
			want:  azure.Settings{Account: "acme", Endpoint: "https://acme.blob.core.windows.net"},
			login: true,
		},
		"a service principal": {
			env: map[string]string{
				"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_TENANT_ID": "00000000-0000-0000-0000-000000000001",
				"AZURE_STORAGE_CLIENT_ID": "00000000-0000-0000-0000-000000000002", "AZURE_STORAGE_CLIENT_SECRET": "s",
			},
			want:  azure.Settings{Account: "acme", Endpoint: "https://acme.blob.core.windows.net"},
			login: true,
		},
		"nothing but the account": {
			env:   map[string]string{"AZURE_STORAGE_ACCOUNT_NAME": "acme"},
			want:  azure.Settings{Account: "acme", Endpoint: "https://acme.blob.core.windows.net"},
			login: true,
		},
		"an endpoint": {
			env:  map[string]string{"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_ACCOUNT_KEY": key, "AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:1/acme/"},
			want: azure.Settings{Account: "acme", Endpoint: "http://127.0.0.1:1/acme", AccountKey: key},
		},
		"an endpoint of another account": {
			options: azure.Options{Account: "other", AccountKey: key},
			env:     map[string]string{"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:1/acme/"},
			want:    azure.Settings{Account: "other", Endpoint: "https://other.blob.core.windows.net", AccountKey: key},
		},
		"a connection string": {
			env: map[string]string{
				"AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=" + key + ";EndpointSuffix=core.chinacloudapi.cn",
			},
			want: azure.Settings{Account: "acme", Endpoint: "https://acme.blob.core.chinacloudapi.cn", AccountKey: key},
		},
		"a connection string with a signature": {
			env:  map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=https://acme.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=2"},
			want: azure.Settings{Account: "acme", Endpoint: "https://acme.blob.core.windows.net", SAS: "sv=1&sig=2"},
		},
		"a connection string of another account": {
			options: azure.Options{Account: "other", AccountKey: key},
			env:     map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "AccountName=acme;AccountKey=" + key},
			want:    azure.Settings{Account: "other", Endpoint: "https://other.blob.core.windows.net", AccountKey: key},
		},
		"the emulator": {
			env:  map[string]string{"AZURE_STORAGE_USE_EMULATOR": "true"},
			want: azure.Settings{Account: azuretest.Account, Endpoint: "http://127.0.0.1:10000/devstoreaccount1", AccountKey: key},
		},
		"the emulator elsewhere": {
			env:  map[string]string{"AZURE_STORAGE_USE_EMULATOR": "1", "AZURITE_BLOB_STORAGE_URL": "http://127.0.0.1:9/"},
			want: azure.Settings{Account: azuretest.Account, Endpoint: "http://127.0.0.1:9/devstoreaccount1", AccountKey: key},
		},
		"the emulator by connection string": {
			env:  map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "UseDevelopmentStorage=true"},
			want: azure.Settings{Account: azuretest.Account, Endpoint: "http://127.0.0.1:10000/devstoreaccount1", AccountKey: key},
		},
		"options before the environment": {
			options: azure.Options{Account: "acme", Endpoint: "https://x.example", SAS: "sv=3"},
			env:     map[string]string{"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_ACCOUNT_KEY": key, "AZURE_STORAGE_ENDPOINT": "https://y.example"},
			want:    azure.Settings{Account: "acme", Endpoint: "https://x.example", SAS: "sv=3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			c.options.Container, c.want.Container = "c", "c"
			s, err := azure.New(c.options)
			if err != nil {
				t.Fatal(err)
			}
			got := s.Settings()
			if login := got.Credential != nil; login != c.login {
				t.Errorf("there is a way to log in: %t, want %t", login, c.login)
			}
			got.Credential = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	clean(t)
	t.Setenv("AZURE_STORAGE_ACCOUNT_NAME", "acme")
	t.Setenv("AZURE_STORAGE_ACCOUNT_KEY", azuretest.Key)
	for want, o := range map[string]azure.Options{
		"give the name alone": {},
		`"a/b"`:               {Container: "a/b"},
		"it is base64":        {Container: "c", AccountKey: "%s3cr3t%"},
		"must be a URL":       {Container: "c", Endpoint: "acme.blob.core.windows.net"},
		"the environment has keys for the account acme": {Container: "c", Account: "other"},
	} {
		_, err := azure.New(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("New(%+v) = %v, want an error with %q", o, err, want)
		}
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT_NAME", "")
	if _, err := azure.New(azure.Options{Container: "c"}); err == nil || !strings.Contains(err.Error(), "AZURE_STORAGE_ACCOUNT_NAME") {
		t.Errorf("New without an account = %v, want an error that says where to give it", err)
	}
}

// A signature for the container is enough for everything.
func TestSharedAccessSignature(t *testing.T) {
	t.Parallel()
	container := server.Container(t)
	client, err := server.Client(container)
	if err != nil {
		t.Fatal(err)
	}
	address, err := client.GetSASURL(sas.ContainerPermissions{Read: true, Add: true, Create: true, Write: true, Delete: true, List: true}, time.Now().Add(time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(address, "?")
	s, err := azure.New(azure.Options{Container: container, Account: azuretest.Account, Endpoint: server.Endpoint, SAS: query})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names() {
		info := put(t, s, "t/"+name, "x")
		if err := calls(t, s, info)[name](); err != nil {
			t.Errorf("%s with a signature = %v, want nil", name, err)
		}
	}
}
