"""How many users there are at which time, for Locust. Not to be imported by name from a locustfile:
Locust takes the first shape that it finds in its names, whether it is asked for or not."""

from locust import LoadTestShape

from load.moment import Moment


class ViralMoment(LoadTestShape):
    """The usual load, the crowd, its going, and the usual load again."""

    def __init__(self, moment: Moment) -> None:
        super().__init__()
        self._moment = moment

    def tick(self) -> tuple[int, float] | None:
        users = self._moment.users(self.get_run_time())
        return None if users is None else (users, self._moment.spawn_rate)
