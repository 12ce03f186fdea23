package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// pylance is the process of engine.py.
type pylance struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	said  *bufio.Scanner
	log   *os.File
}

func startPylance(python, dir string) (*pylance, error) {
	module, err := moduleDir()
	if err != nil {
		return nil, err
	}
	p := &pylance{cmd: exec.Command(python, filepath.Join(module, "bench", "engine.py"))}
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.said = bufio.NewScanner(output)
	p.said.Buffer(nil, 64<<20)
	if p.log, err = os.Create(filepath.Join(dir, "pylance.log")); err != nil {
		return nil, err
	}
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", python, err), p.log.Close())
	}
	return p, nil
}

// tell has it do something and decodes its answer.
func (p *pylance) tell(command map[string]any, answer any) error {
	text, err := json.Marshal(command)
	if err == nil {
		_, err = p.input.Write(append(text, '\n'))
	}
	if err == nil && p.said.Scan() {
		return json.Unmarshal(p.said.Bytes(), answer)
	}
	log, _ := os.ReadFile(p.log.Name())
	return fmt.Errorf("pylance did not do %s (it needs the libraries of python/requirements-test.txt in -python): %w\n%s", text, errors.Join(err, p.said.Err(), io.ErrUnexpectedEOF), log)
}

// load has it query for a while.
func (p *pylance) load(command map[string]any) (cell, error) {
	var a struct {
		Took         []float64
		Elapsed, CPU float64
	}
	if err := p.tell(command, &a); err != nil {
		return cell{}, err
	}
	took := make([]time.Duration, len(a.Took))
	for i, seconds := range a.Took {
		took[i] = duration(seconds)
	}
	c := summarize([][]time.Duration{took}, duration(a.Elapsed))
	c.cpu = duration(a.CPU)
	return c, nil
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func (p *pylance) stop() {
	_ = p.input.Close()
	_ = p.cmd.Wait()
	_ = p.log.Close()
}
