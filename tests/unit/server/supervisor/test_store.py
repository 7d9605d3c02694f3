"""What the server must not forget: what is written is there, and of two edits on one version one wins."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from tailrace.errors import DefiniteError, TransientError
from tailrace.server.errors import NotFoundError, RequestConflictError
from tailrace.server.supervisor.lifecycle import Target
from tailrace.server.supervisor.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.in_folder(tmp_path)


def test_everything_is_there_when_the_file_is_opened_again(store: Store, tmp_path: Path) -> None:
    store.add("b", {"k": "ü ' \" %"}, Target.PAUSED)
    store.add("a", {}, Target.RUNNING)
    store.set_config(store.find("a"), {"k": "1"})
    store.set_target("a", Target.STOPPED)
    store.close()
    found = [(each.name, each.config, each.target, each.version) for each in Store.in_folder(tmp_path).all()]
    assert found == [("a", {"k": "1"}, Target.STOPPED, 2), ("b", {"k": "ü ' \" %"}, Target.PAUSED, 1)]


def test_only_its_owner_may_read_the_file(store: Store, tmp_path: Path) -> None:
    store.add("a", {"database.password": "x"}, Target.RUNNING)
    files = sorted(tmp_path.iterdir())
    assert files[0].name == "server.db"
    assert {os.stat(path).st_mode & 0o077 for path in files} == {0}


def test_a_name_is_taken_once(store: Store) -> None:
    store.add("a", {}, Target.RUNNING)
    with pytest.raises(RequestConflictError, match="Connector a already exists"):
        store.add("a", {}, Target.RUNNING)


def test_of_two_edits_of_the_same_version_the_second_is_refused_and_leaves_nothing(store: Store) -> None:
    read = store.add("a", {"readers.max": "1"}, Target.RUNNING)
    store.set_config(read, {"readers.max": "2"})
    with pytest.raises(RequestConflictError):
        store.set_config(read, {"readers.max": "3"})
    assert store.find("a").config == {"readers.max": "2"}
    assert [each.config for each in store.history("a")] == [{"readers.max": "1"}, {"readers.max": "2"}]


def test_a_password_that_was_changed_is_nowhere_any_more(store: Store, tmp_path: Path) -> None:
    first = store.add("a", {"database.password": "canary-1", "unknown.key": "canary-2"}, Target.RUNNING)
    store.set_config(first, {"database.password": "canary-3"})
    shown = [{"database.password": "********", "unknown.key": "********"}, {"database.password": "********"}]
    assert [each.config for each in store.history("a")] == shown
    store.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"canary-3" in kept
    assert b"canary-1" not in kept
    assert b"canary-2" not in kept


def test_secrets_that_an_older_history_holds_are_removed_when_it_is_opened(store: Store, tmp_path: Path) -> None:
    store.add("a", {}, Target.RUNNING)
    with sqlite3.connect(tmp_path / "server.db") as connection:
        connection.execute("""update tailrace_history set config = '{"database.password": "canary"}'""")
    connection.close()
    assert Store.in_folder(tmp_path).history("a")[0].config == {"database.password": "********"}


def test_one_server_at_a_time_works_with_a_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    first, second = Store.at(url), Store.at(url)
    first.lock()
    with pytest.raises(DefiniteError, match="another tailrace server works with the state at"):
        second.lock()
    first.close()
    second.lock()
    second.close()
    assert {os.stat(path).st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


def test_many_editors_at_once_lose_no_edit_that_was_not_refused(store: Store) -> None:
    store.add("a", {"n": "0"}, Target.RUNNING)
    refused = threading.Semaphore(0)

    def edit() -> None:
        for _ in range(5):
            was = store.find("a")
            try:
                store.set_config(was, {"n": str(int(was.config["n"]) + 1)})
            except RequestConflictError:
                refused.release()

    threads = [threading.Thread(target=edit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lost = 0
    while refused.acquire(blocking=False):
        lost += 1
    assert int(store.find("a").config["n"]) + lost == 20


def test_versions_grow_across_a_deletion_so_that_an_old_edit_never_fits(store: Store) -> None:
    old = store.add("a", {"readers.max": "1"}, Target.RUNNING)
    store.remove("a")
    with pytest.raises(NotFoundError, match="Connector a not found"):
        store.find("a")
    assert store.add("a", {"readers.max": "2"}, Target.RUNNING).version > old.version
    with pytest.raises(RequestConflictError):
        store.set_config(old, {})
    # Of what is gone the secrets are, too.
    assert [each.config for each in store.history("a")] == [None, None, {"readers.max": "2"}]


def test_a_target_can_be_set_for_what_is_there_only(store: Store) -> None:
    with pytest.raises(NotFoundError):
        store.set_target("a", Target.RUNNING)
    with pytest.raises(NotFoundError):
        store.remove("a")


def test_another_configuration_leaves_the_target_that_was_set_meanwhile(store: Store) -> None:
    read = store.add("a", {}, Target.RUNNING)
    store.set_target("a", Target.PAUSED)
    assert store.set_config(read, {"k": "1"}).target is Target.PAUSED


def test_a_url_that_leads_nowhere_is_told_without_its_password() -> None:
    with pytest.raises(DefiniteError, match="cannot be used"):
        Store.at("nonsense")
    with pytest.raises(DefiniteError, match="cannot be used"):
        Store.at("strange+driver://user:canary@127.0.0.1/x")
    with pytest.raises(TransientError) as found:
        Store.at("postgresql+psycopg://user:canary@127.0.0.1:1/x?connect_timeout=2")
    assert "canary" not in str(found.value)
    with pytest.raises(TransientError, match=r"postgresql\+psycopg://user:\*\*\*@127"):
        Store.at("postgresql://user:canary@127.0.0.1:1/x?connect_timeout=2")
    with pytest.raises(DefiniteError, match="No such file"):
        Store.at("sqlite:////nowhere/at/all/state.db")


def test_the_history_says_who_stored_a_configuration_and_which_secrets_changed(store: Store) -> None:
    first = store.add("a", {"database.password": "one", "readers.max": "1"}, Target.RUNNING, "ann@127.0.0.1")
    second = store.set_config(first, {"database.password": "two", "readers.max": "1"}, "bob")
    store.set_config(second, {"database.password": "two"})
    found = [(each.who, each.changed) for each in store.history("a")]
    assert found == [
        ("ann@127.0.0.1", ("database.password", "readers.max")),
        ("bob", ("database.password",)),
        (None, ("readers.max",)),
    ]
    assert [each.version for each in store.history("a", before=3, limit=1)] == [2]
    store.remove("a", "eve")
    assert [(each.who, each.changed) for each in store.history("a")][-1] == ("eve", ())


EARLIER = """
create table tailrace_connectors (
  name varchar(255) primary key, config text not null, target varchar(16) not null, version bigint not null
);
create table tailrace_history (
  id integer primary key autoincrement, name varchar(255) not null, version bigint not null, config text,
  changed_us bigint not null
);
create index ix_tailrace_history_name on tailrace_history (name);
insert into tailrace_connectors values ('a', '{"readers.max": "2"}', 'PAUSED', 2);
insert into tailrace_history values (1, 'a', 1, '{"readers.max": "1"}', 1000);
insert into tailrace_history values (2, 'a', 2, '{"readers.max": "2"}', 2000);
"""
"""A store before the history said who."""


def test_a_store_of_an_earlier_version_is_taken_over_without_loss(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "server.db") as connection:
        connection.executescript(EARLIER)
    connection.close()
    # Servers that are started at the same moment, and one that finds all of it.
    barrier, opened = threading.Barrier(4), threading.Semaphore(0)

    def open_it() -> None:
        barrier.wait(30)
        Store.in_folder(tmp_path).close()
        opened.release()

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(opened.acquire(blocking=False) for _ in threads)
    store = Store.in_folder(tmp_path)
    assert (store.find("a").target, store.find("a").version) == (Target.PAUSED, 2)
    store.set_config(store.find("a"), {"readers.max": "3"}, "ann")
    found = [(each.version, each.config, each.changed_us > 2000, each.who) for each in store.history("a")]
    assert found[:2] == [(1, {"readers.max": "1"}, False, None), (2, {"readers.max": "2"}, False, None)]
    assert found[2] == (3, {"readers.max": "3"}, True, "ann")
