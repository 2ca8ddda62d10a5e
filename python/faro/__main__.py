"""Prints the path of the jar: `spark-submit --jars "$(python3 -m faro)"`."""

from . import jar

print(jar())
