package internal_test

import (
	"go/ast"
	"strings"
)

// The limits. Tests and suites may be longer: a table of cases is read from top to bottom.
const (
	maxFunction     = 80
	maxTestFunction = 120
	maxFile         = 700
	maxTestFile     = 900
	maxPackage      = 4000
	maxNesting      = 3
	maxTestNesting  = 4
	maxParameters   = 5
	maxMethods      = 8
)

// functions holds functions to their length, their nesting and their parameters.
func functions(code *tree) []finding {
	return code.find(func(f file) []finding {
		lines, levels := maxFunction, maxNesting
		if f.test || f.suite {
			lines, levels = maxTestFunction, maxTestNesting
		}
		var found []finding
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			place := named(f, fn.Name.Name)
			if n := code.line(fn.End()) - code.line(fn.Pos()) + 1; n > lines {
				found = append(found, breaks("function", place, "%d lines, and at most %d are read at once", n, lines)...)
			}
			if n := nesting(fn.Body); n > levels {
				found = append(found, breaks("nesting", place, "%d levels, at most %d", n, levels)...)
			}
			found = append(found, parameters(fn, place)...)
		}
		return found
	})
}

// parameters refuses long lists of them, and a bool whose meaning cannot be seen where the function is called. The name of an
// unexported function with a bool alone says what it is.
func parameters(fn *ast.FuncDecl, place string) []finding {
	var found []finding
	count, bools := 0, 0
	for _, field := range fn.Type.Params.List {
		switch typeText(field.Type) {
		case "context.Context", "*testing.T", "testing.TB", "tester":
			continue
		case "bool":
			bools++
		}
		count += max(1, len(field.Names))
	}
	if bools > 0 && (count > 1 || fn.Name.IsExported()) {
		found = append(found, breaks("bool", place, "a bare bool parameter: make it two functions, a field of a struct or a named type")...)
	}
	if count > maxParameters {
		found = append(found, breaks("parameters", place, "%d parameters beside the context, at most %d: make them a struct", count, maxParameters)...)
	}
	return found
}

// typeText returns a simple type as it is written.
func typeText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return typeText(e.X) + "." + e.Sel.Name
	case *ast.StarExpr:
		return "*" + typeText(e.X)
	}
	return ""
}

// nesting returns how deep the statements of a body stand inside each other. A function literal begins anew: it is read by itself.
func nesting(body *ast.BlockStmt) int {
	deepest := 0
	for _, s := range body.List {
		deepest = max(deepest, depth(s))
	}
	return deepest
}

// depth is how many levels a statement opens.
func depth(s ast.Node) int {
	inside := 0
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			inside = max(inside, nesting(n.Body))
			return false
		case *ast.IfStmt:
			here := 1 + nesting(n.Body)
			switch other := n.Else.(type) {
			case *ast.IfStmt:
				here = max(here, depth(other)) // else if stands on the same level
			case *ast.BlockStmt:
				here = max(here, 1+nesting(other))
			}
			inside = max(inside, here, literals(n.Init), literals(n.Cond))
			return false
		case *ast.ForStmt:
			inside = max(inside, 1+nesting(n.Body))
			return false
		case *ast.RangeStmt:
			inside = max(inside, 1+nesting(n.Body), literals(n.X))
			return false
		case *ast.CaseClause:
			inside = max(inside, 1+nesting(&ast.BlockStmt{List: n.Body}))
			return false
		case *ast.CommClause:
			inside = max(inside, 1+nesting(&ast.BlockStmt{List: n.Body}))
			return false
		}
		return true
	})
	return inside
}

// literals returns the nesting of the function literals in a part of a statement, which may be absent.
func literals(n ast.Node) int {
	if n == nil {
		return 0
	}
	deepest := 0
	ast.Inspect(n, func(n ast.Node) bool {
		if fn, ok := n.(*ast.FuncLit); ok {
			deepest = max(deepest, nesting(fn.Body))
			return false
		}
		return true
	})
	return deepest
}

// fileSizes holds files to their length.
func fileSizes(code *tree) []finding {
	return code.find(func(f file) []finding {
		limit := maxFile
		if f.test || f.suite {
			limit = maxTestFile
		}
		if n := strings.Count(f.source, "\n"); n > limit {
			return breaks("file", f.path, "%d lines, at most %d", n, limit)
		}
		return nil
	})
}

// packageSizes holds packages to their length, without tests.
func packageSizes(code *tree) []finding {
	var found []finding
	for dir, files := range code.packages() {
		lines := 0
		for _, f := range files {
			lines += strings.Count(f.source, "\n")
		}
		if lines > maxPackage {
			found = append(found, breaks("package", dir, "%d lines without tests, at most %d", lines, maxPackage)...)
		}
	}
	return found
}

// interfaces holds interfaces to few methods, or to be the sum of named smaller ones.
func interfaces(code *tree) []finding {
	return code.find(func(f file) []finding {
		var found []finding
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if i, ok := spec.Type.(*ast.InterfaceType); ok {
				methods := 0
				for _, m := range i.Methods.List {
					methods += len(m.Names)
				}
				if methods > maxMethods {
					found = append(found, breaks("interface", named(f, spec.Name.Name), "%d methods of its own, at most %d", methods, maxMethods)...)
				}
			}
			return true
		})
		return found
	})
}
