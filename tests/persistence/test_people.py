"""Users and keys, on both databases."""

from dataclasses import replace

from antiphon.ids import KeyId, UserId, new_key_id, new_user_id
from antiphon.persistence.store import SqlStore
from antiphon.records import ApiKey, Scope
from antiphon.testing.specimens import Writer, a_user


def a_key(user: UserId, prefix: str = "sk-abc", **fields: object) -> ApiKey:
    key = ApiKey(
        id=new_key_id(),
        user=user,
        prefix=prefix,
        name="laptop",
        scopes=frozenset({Scope.USER, Scope.OPERATOR}),
        created_ms=5,
        expires_ms=9,
    )
    return replace(key, **fields)


async def test_a_user_is_added_once(store: SqlStore):
    user = a_user("first")

    await store.add_user(user)
    await store.add_user(replace(user, name="second"))

    assert await store.user(user.id) == user
    assert await store.users() == (user,)
    assert await store.user(new_user_id()) is None


async def test_training_is_each_users_choice(store: SqlStore):
    user = a_user()
    await store.add_user(user)

    assert await store.set_training(user.id, False) == replace(user, training=False)

    assert await store.user(user.id) == replace(user, training=False)
    assert await store.set_training(new_user_id(), True) is None


async def test_a_key_is_found_by_its_hash_with_its_user(store: SqlStore):
    user = a_user()
    await store.add_user(user)
    assert not await store.has_keys()
    key, later = a_key(user.id), a_key(user.id, created_ms=6)

    await store.add_key(later, "hash 2")
    await store.add_key(key, "hash 1")

    assert await store.find_key("hash 1") == (key, user)
    assert await store.find_key("hash") is None
    assert await store.keys() == (key, later)
    assert await store.keys(user.id) == (key, later)
    assert await store.keys(new_user_id()) == ()
    assert await store.has_keys()


async def test_a_key_is_revoked_once_by_id_or_prefix(store: SqlStore):
    user = a_user()
    await store.add_user(user)
    key, twin = a_key(user.id), a_key(user.id, "sk-twin")
    await store.add_key(key, "1")
    await store.add_key(twin, "2")
    await store.add_key(a_key(user.id, "sk-twin"), "3")

    assert await store.revoke_key(key.id, 70) == replace(key, revoked_ms=70)
    assert await store.revoke_key(KeyId(key.prefix), 80) == replace(key, revoked_ms=70)
    assert await store.revoke_key(KeyId("sk-twin"), 80) is None, "which of the two?"
    assert await store.revoke_key(twin.id, 80) == replace(twin, revoked_ms=80)
    assert await store.revoke_key(new_key_id(), 80) is None


async def test_last_use_never_goes_back(store: SqlStore):
    user = a_user()
    await store.add_user(user)
    key = a_key(user.id)
    await store.add_key(key, "1")

    await store.touch_keys({key.id: 100, new_key_id(): 100})
    await store.touch_keys({key.id: 90})
    await store.touch_keys({})

    assert await store.keys() == (replace(key, last_used_ms=100),)


async def test_a_server_that_had_keys_stays_one_when_its_last_user_is_erased(store: SqlStore):
    writer = await Writer.new(store)
    await store.add_key(a_key(writer.user), "1")

    await store.erase_user(writer.user, 1)

    assert await store.keys() == ()
    assert await store.has_keys()
