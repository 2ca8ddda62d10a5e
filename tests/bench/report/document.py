"""Stores a section of results beside the page that shows it."""


def put(page, name, text):
    """A section of docs/PAGE.md is the file docs/PAGE/NAME.txt."""
    stored = page.parent / page.stem / f"{name}.txt"
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_text(f"{text}\n")
