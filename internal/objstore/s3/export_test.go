package s3

// DialTo sends every connection to an address, whatever the host of a URL is.
func DialTo(o *Options, address string) { o.dial = address }
