package azure

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// Settings are how a container is reached, after everything was looked up. Clients of the same tables need the same.
type Settings struct {
	Container string
	Account   string
	Endpoint  string // URL of the account's Blob service, without a slash at its end
	// At most one of these is set: the operator's own credentials.
	AccountKey string
	SAS        string // the query, without "?"
	Credential azcore.TokenCredential
}

// The account of the emulator, as every client knows it.
const (
	emulatorAccount  = "devstoreaccount1"
	emulatorKey      = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	emulatorEndpoint = "http://127.0.0.1:10000"
)

// from returns the first of some variables that is set.
func from(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// find completes the options from the environment.
func (o Options) find() (Settings, error) {
	s := Settings{Container: o.Container, Account: o.Account, Endpoint: o.Endpoint, AccountKey: o.AccountKey, SAS: o.SAS}
	if o.Token != "" {
		s.Credential = token(o.Token)
	}
	if err := s.fromConnectionString(from("AZURE_STORAGE_CONNECTION_STRING")); err != nil {
		return Settings{}, err
	}
	named := from("AZURE_STORAGE_ACCOUNT_NAME")
	if emulator := strings.ToLower(from("AZURE_STORAGE_USE_EMULATOR")); emulator == "true" || emulator == "1" {
		s.emulate(named)
	}
	if s.Account == "" {
		s.Account = named
	}
	if s.Account == "" {
		return Settings{}, errors.New("its storage account is not known: set AZURE_STORAGE_ACCOUNT_NAME, or give abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX")
	}
	if s.Endpoint == "" && (named == "" || named == s.Account) {
		s.Endpoint = from("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
	}
	if s.Endpoint == "" {
		s.Endpoint = "https://" + s.Account + ".blob.core.windows.net"
	}
	s.Endpoint = strings.TrimSuffix(s.Endpoint, "/")
	s.SAS = strings.TrimPrefix(s.SAS, "?")
	if s.given() {
		return s, nil
	}
	return s, s.fromEnvironment(named)
}

// given reports whether there are credentials.
func (s *Settings) given() bool { return s.AccountKey != "" || s.SAS != "" || s.Credential != nil }

// fromEnvironment looks for credentials where Lance's clients do, and then where all of Azure's libraries do: the identity of the workload or of
// the machine, the command line.
func (s *Settings) fromEnvironment(named string) error {
	key := from("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
	sas := strings.TrimPrefix(from("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"), "?")
	if named != "" && named != s.Account && (key != "" || sas != "") {
		return fmt.Errorf("it is in the account %s, and the environment has keys for the account %s", s.Account, named)
	}
	tenant, id, secret := from("AZURE_STORAGE_TENANT_ID", "AZURE_STORAGE_AUTHORITY_ID"), from("AZURE_STORAGE_CLIENT_ID"), from("AZURE_STORAGE_CLIENT_SECRET")
	var err error
	switch bearer := from("AZURE_STORAGE_TOKEN"); {
	case bearer != "":
		s.Credential = token(bearer)
	case key != "":
		s.AccountKey = key
	case tenant != "" && id != "" && secret != "":
		s.Credential, err = azidentity.NewClientSecretCredential(tenant, id, secret, nil)
	case sas != "":
		s.SAS = sas
	default:
		s.Credential, err = azidentity.NewDefaultAzureCredential(nil)
	}
	return err
}

// emulate takes the emulator's account, where nothing else is said.
func (s *Settings) emulate(named string) {
	if s.Account == "" {
		s.Account = named
	}
	if s.Account == "" {
		s.Account = emulatorAccount
	}
	if s.Endpoint == "" {
		base := from("AZURITE_BLOB_STORAGE_URL")
		if base == "" {
			base = emulatorEndpoint
		}
		s.Endpoint = strings.TrimSuffix(base, "/") + "/" + s.Account
	}
	if s.Account == emulatorAccount && !s.given() && from("AZURE_STORAGE_ACCOUNT_KEY") == "" {
		s.AccountKey = emulatorKey
	}
}

// fromConnectionString takes what the portal shows as the connection string of an account, where nothing else is said.
func (s *Settings) fromConnectionString(text string) error {
	if text == "" {
		return nil
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, ok := strings.Cut(part, "=")
		if !ok && strings.TrimSpace(part) != "" {
			return errors.New("AZURE_STORAGE_CONNECTION_STRING: want NAME=VALUE;NAME=VALUE, as the portal shows it")
		}
		parts[name] = value
	}
	if strings.EqualFold(parts["UseDevelopmentStorage"], "true") {
		s.emulate("")
		return nil
	}
	if s.Account != "" && parts["AccountName"] != "" && s.Account != parts["AccountName"] {
		return nil // it is for another account
	}
	if s.Account == "" {
		s.Account = parts["AccountName"]
	}
	if s.Endpoint == "" {
		s.Endpoint = endpointIn(parts)
	}
	if s.Account == "" && s.Endpoint != "" {
		s.Account = accountOf(s.Endpoint)
	}
	if !s.given() {
		s.AccountKey = parts["AccountKey"]
	}
	if !s.given() {
		s.SAS = parts["SharedAccessSignature"]
	}
	return nil
}

// endpointIn is the URL of the Blob service that a connection string says; "" where it says none.
func endpointIn(parts map[string]string) string {
	if parts["BlobEndpoint"] != "" || parts["AccountName"] == "" {
		return parts["BlobEndpoint"]
	}
	scheme, suffix := parts["DefaultEndpointsProtocol"], parts["EndpointSuffix"]
	if scheme == "" {
		scheme = "https"
	}
	if suffix == "" {
		suffix = "core.windows.net"
	}
	return scheme + "://" + parts["AccountName"] + ".blob." + suffix
}

// accountOf is the account that an endpoint names: in its host, or after an address in its path.
func accountOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	if account := strings.Trim(u.Path, "/"); account != "" {
		return account
	}
	account, _, _ := strings.Cut(u.Hostname(), ".")
	return account
}

// The bounds of one request. What follows the head of an answer has none but the context's.
const (
	dialTimeout   = 5 * time.Second
	answerTimeout = 60 * time.Second
	connections   = 256 // that are kept for the next request
)

// client makes the library's client of the container.
func (s *Settings) client(sender *http.Client) (*container.Client, error) {
	if sender == nil {
		sender = &http.Client{Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          connections,
			MaxIdleConnsPerHost:   connections,
			IdleConnTimeout:       60 * time.Second,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: answerTimeout,
		}}
	}
	options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: sender,
		Retry:     policy.RetryOptions{MaxRetries: -1}, // this package sends again by itself, because what the answer means depends on it
	}}
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.RawQuery != "" {
		return nil, errors.New("the endpoint of its storage account must be a URL such as https://ACCOUNT.blob.core.windows.net, without a query")
	}
	address := s.Endpoint + "/" + s.Container
	switch {
	case s.AccountKey != "":
		key, err := container.NewSharedKeyCredential(s.Account, s.AccountKey)
		if err != nil {
			return nil, errors.New("the account's key is none: it is base64, as the portal shows it")
		}
		return container.NewClientWithSharedKeyCredential(address, key, options)
	case s.SAS != "":
		return container.NewClientWithNoCredential(address+"?"+s.SAS, options)
	}
	return container.NewClient(address, s.Credential, options)
}
