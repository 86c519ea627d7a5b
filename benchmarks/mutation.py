"""Mutants of `pipeline/` and `alerts/`: changes of one place each in functions drawn by chance, and which of them no test notices.

    python benchmarks/mutation.py --functions 60 --seed 1 --out build/mutation.json
    python benchmarks/mutation.py --only 'pipeline.inference.*' --functions 1000 --show

The tracked files are copied, and mutmut makes and tries the mutants there ([tool.mutmut] in pyproject.toml says what it changes and by
which tests). First it runs these tests once to learn which function each of them calls (minutes); then each mutant is tried by the tests
that call its function, the quickest first, until one fails. A folder that is kept (`--folder`) is gone on with.

Not changed are functions with decorators, compiled kernels among them, and module constants. A mutant that survives is a missing
assertion, or changes nothing that anybody could see: `--show` prints it as a difference.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("alerts", "pipeline")
RESULT = re.compile(r"^ +(?P<mutant>\S+): (?P<end>.+)$", re.MULTILINE)
TRIED = ("killed", "survived", "timeout", "segfault", "suspicious")
LEAST_LINES = 3  # of a function that is drawn


def functions() -> Iterator[str]:
    """The names, as mutmut writes them, of all functions of both packages that it changes."""
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and _is_taken(node):
                yield f"{module}.x_{node.name}"
            elif isinstance(node, ast.ClassDef):
                yield from (
                    f"{module}.xǁ{node.name}ǁ{one.name}" for one in node.body if isinstance(one, ast.FunctionDef) and _is_taken(one)
                )


def _is_taken(function: ast.FunctionDef) -> bool:
    return not function.decorator_list and (function.end_lineno or 0) - function.lineno >= LEAST_LINES


def copied(folder: Path) -> None:
    """Copies the tracked files into a folder; what mutmut has learned there stays."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def mutmut(folder: Path, *arguments: str) -> str:
    """Runs mutmut in the copy; what it printed. Raises RuntimeError where it failed."""
    command = [sys.executable, "-m", "mutmut", *arguments]
    ended = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ended.returncode:
        msg = f"{' '.join(command[:4])} ended with {ended.returncode}:\n{ended.stdout[-4000:]}"
        raise RuntimeError(msg)
    return ended.stdout


def tried(folder: Path, drawn: list[str], children: int) -> dict[str, str]:
    """How each mutant of the drawn functions ended: killed, survived, timeout, no tests and the like."""
    mutmut(folder, "run", "--max-children", str(children), *(f"{name}__mutmut_*" for name in drawn))
    ends = {found["mutant"]: found["end"] for found in RESULT.finditer(mutmut(folder, "results", "--all", "true"))}
    return {mutant: end for mutant, end in ends.items() if mutant.rpartition("__mutmut_")[0] in drawn}


def told(ends: dict[str, str]) -> dict[str, float]:
    """Prints how the mutants of each module ended; the same in sum, `killed` as a share of those that tests tried."""
    by_module: dict[str, Counter[str]] = {}
    for mutant, end in ends.items():
        by_module.setdefault(mutant.partition(".x")[0], Counter())[end] += 1
    for module, counted in sorted(by_module.items()):
        print(f"{module:42} {'  '.join(f'{end} {n}' for end, n in counted.most_common())}")
    total = Counter(ends.values())
    of_tried = sum(total[end] for end in TRIED)
    share = 1 - total["survived"] / of_tried if of_tried else 0.0
    print(f"{of_tried} mutants tried, {total['survived']} survived: {100 * share:.1f} % noticed; {dict(total)}")
    return {"killed_share": share, "tried": of_tried, **total}


def main() -> None:
    """Draws, tries, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="functions to draw from, such as 'pipeline.inference.*'")
    parser.add_argument("--functions", type=int, default=60, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--children", type=int, default=2, help="mutants tried at once")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutation", help="for the copy")
    parser.add_argument("--show", action="store_true", help="print the mutants that survived")
    parser.add_argument("--out", type=Path, help="a file for the figures and the survivors, as JSON")
    args = parser.parse_args()
    of = sorted(name for name in functions() if fnmatch.fnmatch(name, args.only))
    drawn = sorted(random.Random(args.seed).sample(of, min(args.functions, len(of))))  # noqa: S311
    print(f"{len(drawn)} of {len(of)} functions")
    copied(args.folder)
    ends = tried(args.folder, drawn, args.children)
    found = told(ends)
    survived = sorted(mutant for mutant, end in ends.items() if end == "survived")
    for mutant in survived if args.show else ():
        print(mutmut(args.folder, "show", mutant))
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps({**found, "drawn": drawn, "survived_mutants": survived}), encoding="utf-8")


if __name__ == "__main__":
    main()
