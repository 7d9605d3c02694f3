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
        assert listener.take() == [("a", TroubleChanged("one")), ("b", TroubleChanged("two"))]
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
    assert taken[0] == ("", EventsMissed(5))
    assert taken[1] == ("a", TroubleChanged("5"))
    assert len(taken) == WAITING_MAX + 1
