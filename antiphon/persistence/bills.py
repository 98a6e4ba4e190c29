"""Units of work that read the ledger: what users used, and what is to be billed."""

from antiphon.ids import ModelName, ResponseId, UserId
from antiphon.persistence.port import Transaction, statement
from antiphon.quotas import Bill, UsageSum

_DAY_MS = 86_400_000

_SUMS = statement(
    "usage.sums",
    f"""SELECT created_ms / {_DAY_MS}, model, COUNT(*),
        CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT),
        CAST(COALESCE(SUM(cached_tokens), 0) AS BIGINT),
        CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT),
        CAST(COALESCE(SUM(reasoning_tokens), 0) AS BIGINT)
        FROM usage_entries WHERE user_id = $1 AND created_ms >= $2 AND created_ms < $3
        GROUP BY 1, 2""",
)
_BILLS = statement(
    "usage.bills",
    """SELECT response_id, user_id, model, created_ms, settled_ms, input_tokens, cached_tokens,
        output_tokens, reasoning_tokens FROM usage_entries
        WHERE settled_ms IS NOT NULL AND (settled_ms, response_id) > ($1, $2) AND settled_ms < $3
        ORDER BY settled_ms, response_id LIMIT $4""",
)


async def sums(tx: Transaction, user: UserId, since_ms: int, until_ms: int) -> tuple[UsageSum, ...]:
    rows = await tx.fetch(_SUMS, user, since_ms, until_ms)
    return tuple(
        UsageSum(
            day=day,
            model=ModelName(model),
            requests=requests,
            input=input,
            cached=cached,
            output=output,
            reasoning=reasoning,
        )
        for day, model, requests, input, cached, output, reasoning in sorted(map(tuple, rows))
    )


async def settled(
    tx: Transaction, after: tuple[int, str], until_ms: int, limit: int
) -> tuple[Bill, ...]:
    return tuple(
        Bill(
            response=ResponseId(id),
            user=None if user is None else UserId(user),
            model=ModelName(model),
            created_ms=created_ms,
            settled_ms=settled_ms,
            input=input,
            cached=cached,
            output=output,
            reasoning=reasoning,
        )
        for id, user, model, created_ms, settled_ms, input, cached, output, reasoning in (
            await tx.fetch(_BILLS, *after, until_ms, limit)
        )
    )
