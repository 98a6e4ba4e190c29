"""`/v1/users` and `/v1/usage`: what is stored about the caller, taken out or erased; and the same
for others, by an operator of their tenant."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import trio
from quart import Quart, request
from quart_trio.wrappers import TrioResponse

from antiphon.actors.workers.disposal import discard
from antiphon.errors import RecordNotFound
from antiphon.http.asgi import PumpedResponse, Write
from antiphon.http.openai.body import checked_id, json_response, read_json_body, wall_ms
from antiphon.http.openai.conversations.wire import receipt_object
from antiphon.http.openai.decode import decode_body
from antiphon.http.openai.files.names import attachment_headers
from antiphon.http.openai.lists import parse_integer
from antiphon.http.openai.openapi import Operation, Query, mount
from antiphon.http.openai.users.wire import (
    DeletedUser,
    UpdateUser,
    UsageList,
    UserList,
    UserObject,
    usage_list,
    user_object,
)
from antiphon.http.principal import current_principal, operator
from antiphon.ids import LOCAL_TENANT, LOCAL_USER, UserId
from antiphon.ports import Contents
from antiphon.records import JsonObject, Principal, User
from antiphon.settings import HttpSettings
from antiphon.storage import StoreAccess

_UPDATE = msgspec.json.Decoder(UpdateUser)
_PIECE_BYTES = 256 * 1024
_LATEST_S = 2**40
_ME = "/v1/users/me"
_ONE = "/v1/users/<user_id>"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRoutes:
    """What the handlers work with."""

    store: StoreAccess
    contents: Contents
    http: Callable[[], HttpSettings]
    now_ms: Callable[[], int] = wall_ms

    def register(self, app: Quart) -> None:
        mount(app, (*self._own(), *self._operators()))

    def _own(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                rule=_ME,
                name="retrieve_me",
                handler=self.get_me,
                summary="Show the caller",
                answer=UserObject,
                errors=(404,),
            ),
            Operation(
                method="POST",
                rule=_ME,
                name="update_me",
                handler=self.update_me,
                summary="Keep the caller's conversations out of training exports, or let them in",
                body=UpdateUser,
                answer=UserObject,
                errors=(404, 507),
            ),
            Operation(
                method="GET",
                rule=f"{_ME}/export",
                name="export_me",
                handler=self.export_me,
                summary="Everything that is stored about the caller, as a file",
                answer=JsonObject,
                errors=(404,),
            ),
            Operation(
                method="DELETE",
                rule=_ME,
                name="delete_me",
                handler=self.delete_me,
                summary="Erase the caller with everything that is theirs, keys included",
                answer=DeletedUser,
                errors=(404,),
            ),
            Operation(
                method="GET",
                rule="/v1/usage",
                name="list_usage",
                handler=self.usage,
                summary="What the caller used, in all and by day and model",
                answer=UsageList,
                query=(
                    Query("start_time", int, "Unix seconds, inclusive.", 0, _LATEST_S, default=0),
                    Query(
                        "end_time", int, "Unix seconds, exclusive; by default now.", 0, _LATEST_S
                    ),
                ),
            ),
        )

    def _operators(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                rule="/v1/users",
                name="list_users",
                handler=self.list_all,
                summary="List the users of the operator's tenant",
                answer=UserList,
            ),
            Operation(
                method="DELETE",
                rule=_ONE,
                name="delete_user",
                handler=self.delete,
                summary="Erase a user with everything that is theirs, keys included",
                answer=DeletedUser,
            ),
            Operation(
                method="GET",
                rule=f"{_ONE}/export",
                name="export_user",
                handler=self.export,
                summary="Everything that is stored about a user, as a file",
                answer=JsonObject,
            ),
        )

    async def get_me(self) -> TrioResponse:
        user = current_principal().user
        found = await self.store.run(lambda store: store.user(user))
        return json_response(user_object(_existing(found, user)))

    async def update_me(self) -> TrioResponse:
        raw = await read_json_body(self.http().max_body_bytes)
        allowed = decode_body(raw, _UPDATE, {}).training
        user = current_principal().user
        found = await self.store.run(lambda store: store.set_training(user, allowed))
        return json_response(user_object(_existing(found, user)))

    async def export_me(self) -> TrioResponse:
        return await self._export(current_principal().user)

    async def delete_me(self) -> TrioResponse:
        return await self._erase(current_principal().user)

    async def usage(self) -> TrioResponse:
        # Up to the end of this very second, so that what has just ended is in it.
        now_s = self.now_ms() // 1000 + 1
        start_time = parse_integer(request.args, "start_time", 0, 0, _LATEST_S)
        end_time = parse_integer(request.args, "end_time", now_s, 0, _LATEST_S)
        principal = current_principal()
        sums = await self.store.run(
            lambda store: store.usage_sums(
                principal.user, since_ms=start_time * 1000, until_ms=end_time * 1000
            )
        )
        listed = usage_list(sums, start_time=start_time, end_time=end_time, plan=principal.plan)
        return json_response(listed)

    async def list_all(self) -> TrioResponse:
        tenant = operator().tenant
        users = await self.store.run(lambda store: store.users())
        return json_response(
            UserList(data=[user_object(user) for user in users if user.tenant == tenant])
        )

    async def delete(self, user_id: str) -> TrioResponse:
        return await self._erase(await self._other(operator(), user_id))

    async def export(self, user_id: str) -> TrioResponse:
        return await self._export(await self._other(operator(), user_id))

    async def _other(self, caller: Principal, text: str) -> UserId:
        """Another tenant's user is as unknown as one that never was."""
        id_ = UserId(checked_id("user", text, "user_id"))
        found = await self.store.run(lambda store: store.user(id_))
        if found is None or found.tenant != caller.tenant:
            raise RecordNotFound("user", text, "user_id")
        return id_

    async def _export(self, user: UserId) -> TrioResponse:
        found = await self.store.run(lambda store: store.export_user(user))
        if found is None:
            raise RecordNotFound("user", user, "user_id")
        whole = memoryview(await trio.to_thread.run_sync(msgspec.json.encode, found))

        async def pump(write: Write) -> None:
            for start in range(0, len(whole), _PIECE_BYTES):
                await write(bytes(whole[start : start + _PIECE_BYTES]))

        response = PumpedResponse(pump, attachment_headers(f"{user}.json", "application/json"))
        response.headers["content-length"] = str(len(whole))
        return response

    async def _erase(self, user: UserId) -> TrioResponse:
        now = self.now_ms()
        receipt = await self.store.run(lambda store: store.erase_user(user, now))
        if receipt is None:
            raise RecordNotFound("user", user, "user_id")
        if user == LOCAL_USER:  # whoever sits here next is the same user, with nothing
            await self.store.run(lambda store: store.add_user(_local(now)))
        removed = await discard(self.store, self.contents, receipt.contents)
        return json_response(DeletedUser(id=user, receipt=receipt_object(receipt, removed)))


def _existing(found: User | None, user: UserId) -> User:
    if found is None:
        raise RecordNotFound("user", user, "user_id")
    return found


def _local(now_ms: int) -> User:
    return User(id=LOCAL_USER, tenant=LOCAL_TENANT, name="local", created_ms=now_ms)
