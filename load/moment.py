"""A viral moment: within seconds there are many times as many people, they stay for a while, and
go. Pure."""

from dataclasses import dataclass

RAMP_S = 5.0
_BEFORE = 0.2
_UNTIL = 0.6
_AFTER = 0.85
"""Parts of the whole: until then load is as usual; then there is the crowd; then half of the crowd
that is left goes with each half-life; and what follows is as usual, to see how soon it is."""
_HALF_LIVES = 4.0
_GRAIN_S = 3.0
"""The crowd shrinks that often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """`usual` users become `factor` times as many; all of it takes `length_s`."""

    usual: int
    factor: float
    length_s: float

    @property
    def most(self) -> int:
        return max(round(self.usual * self.factor), self.usual)

    @property
    def spawn_rate(self) -> float:
        """Users a second who come or go: those of the ramp all within RAMP_S."""
        return max((self.most - self.usual) / RAMP_S, 1.0)

    def users(self, seconds: float) -> int | None:
        """How many there are by then; None once it is over."""
        part = seconds / self.length_s
        if part >= 1:
            return None
        if part < _BEFORE or part >= _AFTER:
            return self.usual
        if part < _UNTIL:
            return self.most
        gone_s = (seconds - _UNTIL * self.length_s) // _GRAIN_S * _GRAIN_S
        half_life_s = (_AFTER - _UNTIL) * self.length_s / _HALF_LIVES
        return self.usual + round((self.most - self.usual) * 0.5 ** (gone_s / half_life_s))
