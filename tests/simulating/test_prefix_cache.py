from antiphon.simulating.prefix_cache import PrefixCache


def test_what_is_kept_is_found_in_whole_blocks_but_never_all_of_a_prompt():
    cache = PrefixCache(tokens=1000, block=16)
    cache.keep("c", 100, running=0)

    assert cache.hit("c", prompt=150, shared=90, common=0) == 80
    assert cache.hit("c", prompt=150, shared=90, common=0) == 0  # it is running now

    cache.keep("c", 64, running=0)
    assert cache.hit("c", prompt=64, shared=64, common=0) == 48


def test_the_least_recently_used_goes_when_running_streams_need_the_room():
    cache = PrefixCache(tokens=300, block=1)
    for name in ("old", "new"):
        cache.keep(name, 100, running=0)
    cache.keep("last", 100, running=50)

    assert [cache.knows(name) for name in ("old", "new", "last")] == [0, 100, 100]


def test_what_all_prompts_begin_with_is_always_warm():
    cache = PrefixCache(tokens=0, block=16)

    assert cache.hit("", prompt=100, shared=0, common=40) == 32
    assert cache.hit("stranger", prompt=100, shared=60, common=40) == 32
