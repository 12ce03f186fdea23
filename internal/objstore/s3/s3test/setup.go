package s3test

import (
	"bytes"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// identities is the server's list of who may do what.
func identities() string {
	return `{"identities": [{"name": "admin", "credentials": [{"accessKey": "` + accessKey + `", "secretKey": "` + secretKey + `"}],
 "actions": ["Admin", "Read", "List", "Tagging", "Write"]}]}`
}

// iam sets STS up: a role that anybody with keys may assume and that may do everything, so that the policy of a session alone decides.
func iam(session time.Duration) string {
	return `{
 "sts": {"tokenDuration": "` + min(session, time.Hour).String() + `", "maxSessionLength": "` + session.String() + `", "issuer": "seaweedfs-sts", "signingKey": "bGFuY2VyZXN0LXRlc3Qtc2lnbmluZy1rZXktMzItYnl0ZXM="},
 "policy": {"defaultEffect": "Deny", "storeType": "memory"},
 "roles": [{"roleName": "vend", "roleArn": "` + role + `", "attachedPolicies": ["AllS3"],
  "trustPolicy": {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]}]}}],
 "policies": [{"name": "AllS3", "document": {"Version": "2012-10-17",
  "Statement": [{"Effect": "Allow", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::*", "arn:aws:s3:::*/*"]}]}}]
}`
}

// Client returns a plain client of the server, for what tests do behind the back of the code under test. It does not retry.
func (s *Server) Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &s.Endpoint, Region: s.Region, UsePathStyle: true, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: s.AccessKey, SecretAccessKey: s.SecretKey}, nil
		}),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})
}

// try puts an object and removes it.
func (s *Server) try(ctx context.Context) error {
	key := ".ready"
	if _, err := s.Client().PutObject(ctx, &s3.PutObjectInput{Bucket: &s.Bucket, Key: &key, Body: bytes.NewReader([]byte("ready"))}); err != nil {
		return err
	}
	_, err := s.Client().DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.Bucket, Key: &key})
	return err
}
