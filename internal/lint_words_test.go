package internal_test

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/lancerest/lancerest/api"
)

// packageState refuses init functions and variables of packages that can change while the program runs.
func packageState(code *tree) []finding {
	return code.find(func(f file) []finding {
		if f.test {
			return nil
		}
		var found []finding
		for _, decl := range f.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil && decl.Name.Name == "init" {
					found = append(found, breaks("init", f.path, "an init function: whoever needs it calls it")...)
				}
			case *ast.GenDecl:
				if decl.Tok == token.VAR {
					found = append(found, variables(f, decl)...)
				}
			}
		}
		return found
	})
}

// variables returns those of a declaration that can change. Sentinel errors, compiled expressions, embedded files and checks that a
// type has an interface's methods cannot.
func variables(f file, decl *ast.GenDecl) []finding {
	var found []finding
	for _, spec := range decl.Specs {
		v := spec.(*ast.ValueSpec)
		for i, name := range v.Names {
			embedded := decl.Doc != nil && strings.Contains(f.source[decl.Doc.Pos()-f.syntax.FileStart:decl.Pos()-f.syntax.FileStart], "//go:embed")
			if name.Name == "_" || embedded || i < len(v.Values) && constant(v.Values[i]) {
				continue
			}
			found = append(found, breaks("variable", named(f, name.Name), "a variable of the package: give it to a type, or make it a function")...)
		}
	}
	return found
}

// constant reports whether an expression makes a value that nothing changes.
func constant(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	switch typeText(call.Fun) {
	case "errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer", "base32.NewEncoding":
		return true
	}
	return false
}

// comments holds that every package says what lives in it, and every exported name what it is.
func comments(code *tree) []finding {
	var found []finding
	for dir, files := range code.packages() {
		documented := false
		for _, f := range files {
			documented = documented || f.syntax.Doc != nil
			found = append(found, undocumented(f)...)
		}
		if !documented {
			found = append(found, breaks("package comment", dir, "no file of the package says what lives here and what does not")...)
		}
	}
	return found
}

// undocumented returns the exported names of a file that have no comment.
func undocumented(f file) []finding {
	var found []finding
	report := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		for _, doc := range docs {
			if doc != nil {
				return
			}
		}
		if name.IsExported() {
			found = append(found, breaks("comment", named(f, name.Name), "an exported name without a comment")...)
		}
	}
	for _, decl := range f.syntax.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil || ast.IsExported(receiver(decl)) {
				report(decl.Name, decl.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				names, docs := declared(spec)
				for _, name := range names {
					report(name, append(docs, decl.Doc)...)
				}
			}
		}
	}
	return found
}

// declared returns the names that a line of a declaration declares, and its comments.
func declared(spec ast.Spec) ([]*ast.Ident, []*ast.CommentGroup) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{spec.Name}, []*ast.CommentGroup{spec.Doc, spec.Comment}
	case *ast.ValueSpec:
		return spec.Names, []*ast.CommentGroup{spec.Doc, spec.Comment}
	}
	return nil, nil
}

// receiver returns the name of a method's type.
func receiver(fn *ast.FuncDecl) string {
	e := fn.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// words refuses a few things that are never right to write. Comments that put work off name the issue that holds it.
func words(code *tree) []finding {
	later := regexp.MustCompile(`\b(TODO|FIXME|XXX)\b(\(#\d+\))?`)
	return code.find(func(f file) []finding {
		var found []finding
		for _, group := range f.syntax.Comments {
			for _, m := range later.FindAllStringSubmatch(group.Text(), -1) {
				if m[2] == "" {
					found = append(found, breaks("later", f.path, "a bare %s: name its issue, as in TODO(#12)", m[1])...)
				}
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if typeText(n) == "http.Error" {
					found = append(found, breaks("http.Error", f.path, "it answers plain text, and every client expects the error object: use writeError")...)
				}
			case *ast.BasicLit:
				if f.dir == "internal/store/sqlstore" && regexp.MustCompile(`(?i)select\s+\*`).MatchString(n.Value) {
					found = append(found, breaks("SELECT *", f.path, "name the columns: a later migration adds others")...)
				}
			case *ast.CallExpr:
				found = append(found, errorText(f, n)...)
			}
			return true
		})
		return found
	})
}

// errorText refuses to classify an error by its text.
func errorText(f file, call *ast.CallExpr) []finding {
	if f.test || !strings.HasPrefix(typeText(call.Fun), "strings.") && typeText(call.Fun) != "regexp.MatchString" {
		return nil
	}
	for _, arg := range call.Args {
		if inner, ok := arg.(*ast.CallExpr); ok && strings.HasSuffix(typeText(inner.Fun), ".Error") && len(inner.Args) == 0 {
			return breaks("error text", f.path, "an error is told by errors.Is, errors.As or its code, never by its text")
		}
	}
	return nil
}

// skips refuses tests that pass without testing and do not say why.
func skips(code *tree) []finding {
	return code.find(func(f file) []finding {
		var found []finding
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if fn := path.Ext(typeText(call.Fun)); fn == ".SkipNow" || (fn == ".Skip" || fn == ".Skipf") && len(call.Args) == 0 {
				found = append(found, breaks("skip", f.path, "a test that is skipped says why")...)
			}
			return true
		})
		return found
	})
}

// messages holds error texts to what was attempted, in lower case.
func messages(code *tree) []finding {
	return code.find(func(f file) []finding {
		if f.test {
			return nil
		}
		var found []finding
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			text, ok := call.Args[0].(*ast.BasicLit)
			if fn := typeText(call.Fun); !ok || fn != "fmt.Errorf" && fn != "errors.New" {
				return true
			}
			said := []rune(strings.Trim(text.Value, "\"`"))
			if strings.Contains(string(said), "failed to") {
				found = append(found, breaks("message", f.path, "%s: say what was attempted, without \"failed to\"", text.Value)...)
			}
			if len(said) > 1 && unicode.IsUpper(said[0]) && unicode.IsLower(said[1]) {
				found = append(found, breaks("message", f.path, "%s: error texts begin in lower case, since others are put before them", text.Value)...)
			}
			return true
		})
		return found
	})
}

// operationCodes holds that an operation may answer, by the table in package api, every code that the comment of its method in
// package catalog lists after "Errors:". Words in parentheses there say when.
func operationCodes(code *tree) []finding {
	may := map[string][]api.Code{}
	for _, op := range api.Operations() {
		may[op.Name] = op.Codes
	}
	number, aside := regexp.MustCompile(`\b\d+\b`), regexp.MustCompile(`\([^()]*\)`)
	return code.find(func(f file) []finding {
		var found []finding
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || f.test || f.dir != "internal/catalog" || fn.Recv == nil || may[fn.Name.Name] == nil {
				continue
			}
			_, said, ok := strings.Cut(fn.Doc.Text(), "Errors:")
			if !ok {
				found = append(found, breaks("codes", named(f, fn.Name.Name), "the comment does not list the codes: Errors: 1, 4")...)
			}
			for _, text := range number.FindAllString(aside.ReplaceAllString(said, ""), -1) {
				n, err := strconv.Atoi(text)
				if err != nil || !slices.Contains(may[fn.Name.Name], api.Code(n)) {
					found = append(found, breaks("codes", named(f, fn.Name.Name), "the comment lists code %s, and the operation's row in package api does not", text)...)
				}
			}
		}
		return found
	})
}
