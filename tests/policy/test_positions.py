import tomllib

import pytest

from antiphon.policy.positions import positions_in

TEXT = '''\
format = 1 # a comment with [[rules]] in it
refusal.de = "Nein"

[[rules]]
id = "first"
message = { de = "a # b", "fr" = """
two
lines""" }
stages = [
  "input", # one
  "output",
]
match.kind = "phrases"
match.phrases = ["a\\"]", 'b\\', [1, 2]]

  [[rules]]
  "i\\u0064" = 'second'
  [rules.match]
  kind = "classifier"
  thresholds.hate = 0.5
  [rules.match."x.y"]
  z = 1979-05-27T07:32:00Z
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("format",), 1),
        (("refusal", "de"), 2),
        (("rules", 0), 4),
        (("rules", 0, "id"), 5),
        (("rules", 0, "message", "fr"), 6),
        (("rules", 0, "stages"), 9),
        (("rules", 0, "stages", 0), 10),
        (("rules", 0, "stages", 1), 11),
        (("rules", 0, "match", "kind"), 13),
        (("rules", 0, "match", "phrases", 2, 1), 14),
        (("rules", 1), 16),
        (("rules", 1, "id"), 17),
        (("rules", 1, "match"), 18),
        (("rules", 1, "match", "thresholds", "hate"), 20),
        (("rules", 1, "match", "x.y", "z"), 22),
    ],
)
def test_the_line_of_everything_is_found(path, line):
    assert tomllib.loads(TEXT)

    assert positions_in(TEXT).line(path) == line


def test_what_is_not_there_has_the_line_of_what_is_around_it():
    assert positions_in(TEXT).line(("rules", 1, "match", "words")) == 18
    assert positions_in(TEXT).line(("elsewhere",)) == 1


@pytest.mark.parametrize("text", ["", "\r\n", "a = 1", "a = ''''x'''''\r\nb = 2", 'a."b.c" = [{}]'])
def test_a_small_text_is_walked_to_its_end(text):
    assert tomllib.loads(text) is not None

    assert positions_in(text).line(("nothing",)) == 1
