package config

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
)

// Scheme is the canonical scheme of the root's location: "file", "s3", "gs", "az", "abfss" or "memory"; "" for a location that is
// none.
func (r Root) Scheme() string {
	if !strings.Contains(r.Location, "://") {
		return "file"
	}
	loc, err := lance.ParseLocation(r.Location)
	if err != nil {
		return ""
	}
	return loc.Scheme
}

// canonical is the root's location in the one spelling that all spellings of it have. A directory that is not absolute stays as it is.
func (r Root) canonical() string {
	loc, err := lance.ParseLocation(r.Location)
	if err != nil {
		return r.Location
	}
	return loc.String()
}

// store names the kind of storage in the "for" tags of settings.
func (r Root) store() string {
	if s := r.Scheme(); s != "abfss" {
		return s
	}
	return "az"
}

// Mode is what clients of the root are given.
func (r Root) Mode() access.Mode {
	switch {
	case r.Credentials != "":
		return access.Mode(r.Credentials)
	case r.Vend != Vending{}:
		return access.Vend
	case r.store() == "file" || r.store() == "memory":
		return access.None
	}
	return access.Client
}

// Grant is what vended keys allow.
func (v Vending) grant() (access.Grant, error) {
	switch v.Grant {
	case "", "read-write":
		return access.ReadWrite, nil
	case "read":
		return access.Read, nil
	}
	return 0, fmt.Errorf("vend.grant %q: there are read and read-write", v.Grant)
}

// check says everything that is wrong with a root.
func (r Root) check() error {
	if r.Location == "" {
		return errors.New("it has no location")
	}
	if err := CheckPlace(r.Location); err != nil {
		return err
	}
	if strings.Contains(r.Location, "://") {
		if _, err := lance.ParseLocation(r.Location); err != nil {
			return err
		}
	}
	errs := []error{r.checkFor(), r.checkEndpoints(), r.checkKeys(), r.checkMode()}
	if r.Mode() == access.Vend {
		errs = append(errs, r.checkVend())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: %w", r.Location, err)
	}
	return nil
}

// storeURI is what a location begins with that is meant to be a URI. Windows has drives of one letter.
var storeURI = regexp.MustCompile(`^(?i:[a-z][a-z0-9+.-]+:/|(s3|s3a|s3n|gs|gcs|az|abfss|memory|file):)`)

// CheckPlace refuses what would be taken for the name of a directory, and is meant for something else: a URI with a slash too few, or a home
// directory that no shell has put in place of its sign.
func CheckPlace(location string) error {
	switch {
	case strings.HasPrefix(location, "~"):
		return fmt.Errorf("%s: nobody has put a home directory in the place of ~: write it out (or ./~ for a directory of that name)", location)
	case !strings.Contains(location, "://") && storeURI.MatchString(location):
		scheme, _, _ := strings.Cut(location, ":")
		// The rest is not repeated: it may hold a password.
		return fmt.Errorf("%s:…: a URI has two slashes after %[1]s: (s3://BUCKET/PREFIX, file:///DIRECTORY); for a directory of that name write ./ before it", scheme)
	}
	return nil
}

// checkFor refuses settings that are for another kind of storage.
func (r Root) checkFor() error {
	return errors.Join(misplaced(reflect.ValueOf(r), "", r.store())...)
}

func misplaced(settings reflect.Value, prefix, store string) []error {
	var errs []error
	for i := range settings.NumField() {
		field, value := settings.Type().Field(i), settings.Field(i)
		name := prefix + field.Tag.Get("toml")
		stores := strings.Fields(field.Tag.Get("for"))
		switch {
		case value.IsZero():
		case field.Type == reflect.TypeFor[Vending]():
			errs = append(errs, misplaced(value, name+".", store)...)
		case len(stores) > 0 && !slices.Contains(stores, store):
			errs = append(errs, fmt.Errorf("%s is for %s", name, strings.Join(stores, ", ")))
		}
	}
	return errs
}

func (r Root) checkEndpoints() error {
	return errors.Join(r.checkEndpoint("endpoint", r.Endpoint), r.checkEndpoint("vend.sts_endpoint", r.Vend.STSEndpoint))
}

// checkEndpoint wants the URL of a server. It is not repeated whole: somebody may have put a password there.
func (r Root) checkEndpoint(name, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return fmt.Errorf("%s: it must be a URL such as https://s3.example.org", name)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return fmt.Errorf("%s: the URL may hold no user, query or fragment", name)
	case u.Scheme == "http" && (r.AllowHTTP == nil || !*r.AllowHTTP):
		return fmt.Errorf("%s %s has no TLS, so that keys and data can be read on the way: set allow_http if that is meant", name, u.Host)
	}
	return nil
}

// checkKeys wants the operator's keys to be whole, and there.
func (r Root) checkKeys() error {
	var errs []error
	if r.AccessKeyID.Given() != r.SecretAccessKey.Given() {
		errs = append(errs, errors.New("access_key_id and secret_access_key go together"))
	}
	if r.SessionToken.Given() && !r.AccessKeyID.Given() {
		errs = append(errs, errors.New("session_token goes with access_key_id and secret_access_key"))
	}
	if r.Profile != "" && r.AccessKeyID.Given() {
		errs = append(errs, errors.New("profile and access_key_id both say whose keys to use: give one"))
	}
	for _, s := range []Secret{r.AccessKeyID, r.SecretAccessKey, r.SessionToken, r.ServiceAccount, r.AccountKey, r.Vend.ExternalID} {
		if _, err := s.Read(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r Root) checkMode() error {
	mode, err := access.ParseMode(string(r.Mode()))
	if err != nil {
		return err
	}
	if s := r.store(); mode != access.None && (s == "file" || s == "memory") {
		return fmt.Errorf("credentials %s: there are none for what lies on this machine; say none, or nothing", mode)
	}
	if mode != access.Vend && r.Vend != (Vending{}) {
		return fmt.Errorf("the settings under vend are for credentials vend, and this root has %s", mode)
	}
	return nil
}

// vendMax is the longest life of keys that any provider gives.
const vendMax = 12 * time.Hour

func (r Root) checkVend() error {
	v := r.Vend
	_, err := v.grant()
	errs := []error{err}
	if r.store() == "s3" && v.RoleARN == "" {
		errs = append(errs, errors.New("credentials vend: give vend.role_arn (or --sts-role-arn), the role that is assumed for the keys"))
	}
	if v.RoleARN != "" && !strings.HasPrefix(v.RoleARN, "arn:") {
		errs = append(errs, fmt.Errorf("vend.role_arn %q: it must be of the form arn:aws:iam::ACCOUNT:role/NAME", v.RoleARN))
	}
	life, least, offset := v.times()
	switch {
	case v.Duration < 0 || v.MinLife < 0 || v.RefreshOffset < 0:
		errs = append(errs, errors.New("vend: durations must be above 0"))
	case life > vendMax:
		errs = append(errs, fmt.Errorf("vend.duration %s: at most %s", life, vendMax))
	case life <= least:
		errs = append(errs, fmt.Errorf("vend.duration %s must be above vend.min_life, %s", life, least))
	case offset >= least:
		errs = append(errs, fmt.Errorf("vend.refresh_offset %s must be below vend.min_life, %s: clients that are given keys with less to live ask again for every request", offset, least))
	}
	return errors.Join(errs...)
}

// DefaultDuration is how long vended keys live where nothing else is said.
const DefaultDuration = time.Hour

// times are the life of vended keys, the least life to hand them out with, and how long before the end clients come again.
func (v Vending) times() (life, least, offset time.Duration) {
	life, least, offset = time.Duration(v.Duration), time.Duration(v.MinLife), time.Duration(v.RefreshOffset)
	if life == 0 {
		life = DefaultDuration
	}
	if least == 0 {
		least = access.DefaultMinLife
	}
	if offset == 0 {
		offset = least / 2
	}
	return life, least, offset
}

// Life is how long vended keys live.
func (v Vending) Life() time.Duration {
	life, _, _ := v.times()
	return life
}

// Options are the options of access that the root's settings say; whoever opens the root adds where its keys come from.
func (r Root) Options() access.Options {
	grant, _ := r.Vend.grant()
	_, least, offset := r.Vend.times()
	return access.Options{Mode: r.Mode(), Grant: grant, MinLife: least, RefreshOffset: offset}
}
