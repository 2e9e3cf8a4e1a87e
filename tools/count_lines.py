"""Lines of code without blank lines, comments and docstrings, and what makes a package hard to find one's way in.

    python tools/count_lines.py [SOURCE]     (default: src/bellief)

Counts are deterministic: they depend on the files alone.
"""

import ast
import collections
import io
import sys
import tokenize
from pathlib import Path

MANY_IMPORTS = 12
_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def docstring_lines(tree: ast.AST) -> set[int]:
    """Numbers of the lines that docstrings take up."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                found |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found


def code_lines(text: str) -> int:
    """Lines that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(text)))


def imports(text: str) -> int:
    """Import statements anywhere in a file."""
    return sum(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(ast.parse(text)))


def functions(text: str) -> int:
    """Functions and methods, nested ones included."""
    return sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(ast.parse(text)))


def main(folder: str = "src/bellief") -> None:
    root = Path(folder)
    texts = {path.relative_to(root): path.read_text() for path in sorted(root.rglob("*.py"))}
    packages: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    for path, text in texts.items():
        name = path.parts[0] if len(path.parts) > 1 else "(root)"
        for place, count in enumerate((1, code_lines(text), functions(text))):
            packages[name][place] += count
    print(f"{'package':<14}{'files':>7}{'lines':>8}{'functions':>11}")
    for name, counts in sorted(packages.items()):
        print(f"{name:<14}{counts[0]:>7}{counts[1]:>8}{counts[2]:>11}")
    total = [sum(counts[place] for counts in packages.values()) for place in range(3)]
    print(f"{'all':<14}{total[0]:>7}{total[1]:>8}{total[2]:>11}")
    crowded = sorted(str(path) for path, text in texts.items() if imports(text) > MANY_IMPORTS)
    print(f"modules with more than {MANY_IMPORTS} imports: {len(crowded)}")
    names = collections.Counter(path.name for path in texts if path.name != "__init__.py")
    repeated = sorted(name for name, count in names.items() if count > 1)
    print(f"file names that occur more than once: {len(repeated)} ({', '.join(repeated)})")


if __name__ == "__main__":
    main(*sys.argv[1:])
