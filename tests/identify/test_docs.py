"""What docs/identify.md shows runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "identify.md"


def test_python_runs(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for code in blocks:
        exec(compile(code, PAGE.name, "exec"), {})
    assert "k12*k21" in capsys.readouterr().out
