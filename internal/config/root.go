package config

import "time"

// Root is one place where tables may live, with all that is to be known about it. Zero values mean the defaults.
type Root struct {
	Location        string  `toml:"location" help:"Where the tables lie: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or a directory. Every root needs one."`
	Endpoint        string  `toml:"endpoint" for:"s3 gs az" help:"URL of the service, where it is not the provider's own. For s3 the environment may say it: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL."`
	Region          string  `toml:"region" for:"s3" help:"Region of the bucket. The default is what AWS_REGION or the profile says, and us-east-1 with an endpoint."`
	PathStyle       *bool   `toml:"path_style" for:"s3" help:"Whether the bucket stands in the path of URLs (true) or in their host name (false). The default is true with an endpoint, else false."`
	AllowHTTP       *bool   `toml:"allow_http" for:"s3 gs az" help:"Whether an endpoint without TLS is spoken to. The default is false."`
	Account         string  `toml:"account" for:"az" help:"Storage account. The default is AZURE_STORAGE_ACCOUNT_NAME."`
	AccessKeyID     Secret  `toml:"access_key_id" for:"s3" help:"Keys of the operator. Without them the provider's usual places are searched: the environment, profiles, the machine's role."`
	SecretAccessKey Secret  `toml:"secret_access_key" for:"s3" help:"Goes with access_key_id."`
	SessionToken    Secret  `toml:"session_token" for:"s3" help:"Goes with access_key_id, where it is temporary."`
	Profile         string  `toml:"profile" for:"s3" help:"Profile of the AWS configuration files. The default is AWS_PROFILE."`
	ServiceAccount  Secret  `toml:"service_account" for:"gs" help:"Service account's key, as JSON. Without it the provider's usual places are searched: GOOGLE_APPLICATION_CREDENTIALS, the machine's account."`
	AccountKey      Secret  `toml:"account_key" for:"az" help:"Key of the storage account. Without it the provider's usual places are searched: the environment, the machine's identity."`
	Credentials     string  `toml:"credentials" help:"What clients are given: none (nothing), client (endpoint, region and the like, without keys), static (the operator's own keys) or vend (temporary keys that reach the table alone). The default is client for object stores, none for directories."`
	Vend            Vending `toml:"vend" help:"How temporary keys are made."`
}

// Vending says how temporary keys are made. Zero values mean the defaults.
type Vending struct {
	Grant         string   `toml:"grant" help:"What the keys allow: read, or read-write (the default)."`
	Duration      Duration `toml:"duration" for:"s3 az" help:"How long the keys live, such as 15m. The default is 1h; AWS allows 15m to 12h, and 1h at most where the operator's own keys are those of a role. Google's tokens live as long as Google says, an hour at most."`
	MinLife       Duration `toml:"min_life" help:"How long keys that are kept must still live to be handed out again. The default is 5m."`
	RefreshOffset Duration `toml:"refresh_offset" help:"How long before their end clients ask for new keys; below min_life. The default is half of it."`
	RoleARN       string   `toml:"role_arn" for:"s3" help:"Role that is assumed for the keys. Mode vend needs it."`
	ExternalID    Secret   `toml:"external_id" for:"s3" help:"External id that the role's trust policy asks for."`
	SessionName   string   `toml:"session_name" for:"s3" help:"Name of the sessions in the provider's logs. The default is lancerest."`
	STSEndpoint   string   `toml:"sts_endpoint" for:"s3" help:"URL of the token service. The default is the endpoint, unless that is Amazon's or there is none: then Amazon's in the region."`
	KMSKeyARN     string   `toml:"kms_key_arn" for:"s3" help:"Key of AWS KMS that the bucket's objects are encrypted with, if any: vended keys must be allowed to use it."`
	ContainerWide bool     `toml:"container_wide" for:"az" help:"Whether keys may reach the whole container where the account has no directories (a flat one). The default is false: then mode vend refuses to start there."`
}

// Duration is a time.Duration that is written as in Go: 15m, 1h30m.
type Duration time.Duration

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}
