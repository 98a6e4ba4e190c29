import trio

from antiphon.testing.schedules import seeded_schedule


def order(seed: int) -> tuple[int, ...]:
    ran: list[int] = []

    async def note(number: int) -> None:
        await trio.lowlevel.checkpoint()
        ran.append(number)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(note, number)

    with seeded_schedule(seed):
        trio.run(main)
    return tuple(ran)


def test_a_seed_repeats_its_schedule_and_seeds_differ() -> None:
    orders = [order(seed) for seed in range(20)]

    assert orders == [order(seed) for seed in range(20)]
    assert len(set(orders)) > 15
