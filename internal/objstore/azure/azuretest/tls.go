package azuretest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// domain is what stands behind the account in the host of an endpoint; names below localhost mean this machine.
const domain = "blob.localhost"

// The files of a certificate.
const (
	certificateFile = "certificate.pem"
	keyFile         = "key.pem"
)

// certificate writes a certificate for the endpoint into a directory and returns what trusts it.
func certificate(dir string) (*x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Azurite"}, DNSNames: []string{Account + "." + domain},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	for name, block := range map[string]*pem.Block{certificateFile: {Type: "CERTIFICATE", Bytes: signed}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return nil, err
		}
	}
	parsed, err := x509.ParseCertificate(signed)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool, nil
}

// Token is an access token for storage, as Azure's identity provider would make it: Azurite looks whether it is one for storage and has not
// ended, and trusts every signature.
func Token(life time.Duration) string {
	part := func(v any) string {
		text, _ := json.Marshal(v) // maps of strings and numbers
		return base64.RawURLEncoding.EncodeToString(text)
	}
	now := time.Now()
	return part(map[string]string{"typ": "JWT", "alg": "RS256"}) + "." + part(map[string]any{
		"aud": "https://storage.azure.com", "iss": "https://sts.windows.net/00000000-0000-0000-0000-000000000001/",
		"iat": now.Add(-time.Minute).Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(life).Unix(),
		"oid": "00000000-0000-0000-0000-000000000002", "tid": "00000000-0000-0000-0000-000000000001",
	}) + "." + base64.RawURLEncoding.EncodeToString([]byte("signature"))
}
