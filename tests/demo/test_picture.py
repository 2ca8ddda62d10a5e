"""The demo's picture says what the runs said."""

from __future__ import annotations

from xml.etree import ElementTree

from demo import picture
from demo.picture import Job

SVG = "{http://www.w3.org/2000/svg}"
JOBS = [
    Job("a <b>", 101.2, 98, 104, False),
    Job("repartition", 60, 58, 62, True),
    Job("sort", 150, 140, 171, True),
    Job("even", 100.3, 100, 101, False),
]


def parts(kind):
    drawn = ElementTree.fromstring(picture.svg(JOBS, "title", "note"))
    return drawn.findall(SVG + kind)


def words():
    return [text.text for text in parts("text")]


def test_each_job_has_its_name_and_its_change():
    for expected in ("a <b>", "repartition", "+1 %", "−40 %", "+50 %", "±0 %", "title", "note"):
        assert expected in words()


def test_the_axis_holds_the_slowest_run():
    assert "180" in words()
    assert "200" not in words()


def test_a_bar_is_as_long_as_its_share():
    widths = [float(box.get("width")) for box in parts("rect")[1:]]
    stock, shown = widths[::2], widths[1::2]
    for one, job in zip(shown, JOBS):
        assert abs(one / stock[0] * 100 - job.middle) < 0.2
    assert len(set(stock)) == 1


def test_what_shuffles_has_a_colour_of_its_own():
    fills = [box.get("fill") for box in parts("rect")[2::2]]
    assert fills == [picture.GREY, picture.GREEN, picture.GREEN, picture.GREY]
