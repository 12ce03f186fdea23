package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// conn is one kept-alive HTTP/1.1 connection. It does only what the load needs, so that the generator, which shares the machine
// with the server, takes as little of it as possible.
type conn struct {
	net    net.Conn
	reader *bufio.Reader
	body   []byte
}

// answerMax is how long an answer may take beyond the time that a connection is for: a server that hangs ends the run with an error.
const answerMax = 60 * time.Second

// dial opens a connection to be used for so long.
func dial(address string, use time.Duration) (*conn, error) {
	c, err := net.DialTimeout("tcp", address, answerMax)
	if err != nil {
		return nil, err
	}
	return &conn{net: c, reader: bufio.NewReaderSize(c, 32<<10)}, c.SetDeadline(time.Now().Add(use + answerMax))
}

func (c *conn) close() { _ = c.net.Close() }

// do sends a whole request and reads the answer. The body is valid until the next call.
func (c *conn) do(request []byte) (status int, body []byte, err error) {
	if _, err := c.net.Write(request); err != nil {
		return 0, nil, err
	}
	status, length, err := c.head()
	if err != nil {
		return 0, nil, fmt.Errorf("read an answer: %w", err)
	}
	c.body = c.body[:0]
	if length == inChunks {
		err = c.chunks()
	} else {
		err = c.more(length)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("read the body of an answer: %w", err)
	}
	return status, c.body, nil
}

// more reads so many bytes of a body.
func (c *conn) more(length int) error {
	had := len(c.body)
	c.body = slices.Grow(c.body, length)[:had+length]
	_, err := io.ReadFull(c.reader, c.body[had:])
	return err
}

// chunks reads a body that comes in chunks.
func (c *conn) chunks() error {
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		length, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil {
			return fmt.Errorf("chunk %q", line)
		}
		if err := c.more(int(length)); err != nil {
			return err
		}
		if _, err := c.reader.Discard(len("\r\n")); err != nil || length == 0 {
			return err
		}
	}
}

var lengthHeader = []byte("content-length:")

// chunkedHeader says that a body comes in chunks.
const chunkedHeader = "transfer-encoding: chunked"

// inChunks stands for the length of a body that comes in chunks.
const inChunks = -2

// head reads the status and the headers of an answer.
func (c *conn) head() (status, length int, err error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, 0, fmt.Errorf("status line %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, 0, fmt.Errorf("status line %q", line)
	}
	length = -1
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if len(line) > len(lengthHeader) && bytes.EqualFold(line[:len(lengthHeader)], lengthHeader) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthHeader):]))); err != nil {
				return 0, 0, fmt.Errorf("header %q", line)
			}
		}
		if strings.EqualFold(string(bytes.TrimSpace(line)), chunkedHeader) {
			length = inChunks
		}
	}
	if length == -1 {
		return 0, 0, errors.New("it does not say how long its body is")
	}
	return status, length, nil
}

// request writes a request as pylance's own client does: these headers, in lower case, and neither a length nor a type where
// there is no body.
func request(method, target, host string, body []byte) []byte {
	b := make([]byte, 0, 160+len(target)+len(body))
	b = append(b, method...)
	b = append(b, ' ')
	b = append(b, target...)
	b = append(b, " HTTP/1.1\r\n"...)
	if body != nil {
		b = append(b, "content-type: application/json\r\n"...)
	}
	b = append(b, "accept: */*\r\naccept-encoding: gzip\r\nhost: "...)
	b = append(b, host...)
	if body != nil {
		b = append(b, "\r\ncontent-length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
	}
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}
