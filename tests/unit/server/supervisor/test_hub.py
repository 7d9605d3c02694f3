"""What is told reaches who listens, and a slow listener holds up no one."""

from __future__ import annotations

from tailrace.connector.events import TroubleChanged
from tailrace.server.supervisor.hub import WAITING_MAX, EventsMissed, Hub


def test_a_listener_gets_what_is_told_while_it_listens_in_order() -> None:
    hub, woken = Hub(), []
    hub.tell("a", TroubleChanged("before"))
    with hub.listening(lambda: woken.append(1)) as listener:
        hub.tell("a", TroubleChanged("one"))
        hub.tell("b", TroubleChanged("two"))
        taken = listener.take()
        assert [(each.name, each.told) for each in taken] == [
            ("a", TroubleChanged("one")),
            ("b", TroubleChanged("two")),
        ]
        assert [each.number - listener.began for each in taken] == [1, 2]
        assert listener.take() == []
        assert hub.listeners == 1
    hub.tell("a", TroubleChanged("after"))
    assert len(woken) == 2
    assert hub.listeners == 0


def test_one_that_is_too_slow_loses_the_oldest_and_is_told_how_many() -> None:
    hub = Hub()
    with hub.listening(lambda: None) as listener:
        for number in range(WAITING_MAX + 5):
            hub.tell("a", TroubleChanged(str(number)))
        taken = listener.take()
    assert (taken[0].name, taken[0].told) == ("", EventsMissed(5))
    assert (taken[1].name, taken[1].told) == ("a", TroubleChanged("5"))
    assert len(taken) == WAITING_MAX + 1


def test_who_hears_of_something_finds_it_noted_by_those_who_subscribed() -> None:
    hub, noted, found = Hub(), [], []
    hub.subscribe(lambda _, told: noted.append(told))
    with hub.listening(lambda: found.append(len(noted))):
        hub.tell("a", TroubleChanged("one"))
    assert found == [1]


def test_all_who_listen_get_the_same_object_so_that_it_is_written_once() -> None:
    hub = Hub()
    with hub.listening(lambda: None) as one, hub.listening(lambda: None) as other:
        hub.tell("a", TroubleChanged("one"))
        assert one.take()[0] is other.take()[0]
