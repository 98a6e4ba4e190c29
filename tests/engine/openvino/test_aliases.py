from antiphon.engine.openvino.aliases import Salter

BITS = 16
PROMPT = list(range(100, 160))


def test_salted_ids_are_the_same_tokens_by_other_names():
    salted = Salter(BITS).salted(PROMPT, "a")

    assert [token & ((1 << BITS) - 1) for token in salted] == PROMPT
    assert all(0 <= token < 1 << 31 for token in salted)
    assert salted[0] != PROMPT[0]


def test_each_salt_has_names_of_its_own_and_keeps_them():
    salter = Salter(BITS)

    assert salter.salted(PROMPT, "a") == salter.salted(PROMPT, "a")
    assert salter.salted(PROMPT, "a")[0] != salter.salted(PROMPT, "b")[0]


def test_nobody_can_compute_the_names_from_outside():
    assert Salter(BITS).salted(PROMPT, "a") != Salter(BITS).salted(PROMPT, "a")


def test_a_prompt_that_goes_on_keeps_the_names_it_had():
    salter = Salter(BITS)

    for length in (1, 5, 30, 60):
        assert salter.salted(PROMPT[:length], "a") == salter.salted(PROMPT, "a")[:length]
