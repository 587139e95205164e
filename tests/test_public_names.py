"""What `import signspot` promises, and the pages generated from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import signspot

ROOT = Path(__file__).parents[1]


def test_every_public_name_exists_and_the_list_is_sorted() -> None:
    assert all(hasattr(signspot, name) for name in signspot.__all__)
    assert signspot.__all__ == sorted(signspot.__all__)
    assert dir(signspot) == signspot.__all__
    with pytest.raises(AttributeError, match="no attribute 'spott'"):
        signspot.spott  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = "import sys, signspot; print({'torch', 'matplotlib', 'pyarrow', 'av', 'lxml', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("page", ["cli.md", "api.md"])
def test_the_generated_pages_are_up_to_date(page: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "docs" / "generate.py"), str(tmp_path)], check=True)
    assert (ROOT / "docs" / page).read_text() == (tmp_path / page).read_text(), "run `make docs`"
