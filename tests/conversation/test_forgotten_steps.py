import pytest

from botservice import ForgetOldImages, forget_old_images
from botservice.conversation.agent_memory import AgentMemory
from botservice.conversation.steps import ActionStep, TaskStep
from botservice.core.messages import Attachment


class Agent:
    def __init__(self, memory):
        self.memory = memory


def with_images(*numbers):
    image = Attachment("image/png", data=b"x")
    return [ActionStep(number, observations_images=[image]) for number in numbers]


def images_of(memory):
    return [bool(step.get_value("observations_images")) for step in memory.steps]


def test_only_the_newest_two_steps_keep_their_images():
    memory = AgentMemory("", [TaskStep("look"), *with_images(1, 2), ActionStep(3), *with_images(4)])
    forget_old_images(memory.steps[-1], Agent(memory))
    assert images_of(memory) == [False, False, True, False, True]


def test_how_many_are_kept_may_be_chosen():
    memory = AgentMemory("", with_images(1, 2, 3))
    ForgetOldImages(keep=1)(memory.steps[-1], Agent(memory))
    assert images_of(memory) == [False, False, True]
    ForgetOldImages(keep=0)(memory.steps[-1], Agent(memory))
    assert images_of(memory) == [False, False, False]
    with pytest.raises(ValueError, match="0 or more"):
        ForgetOldImages(keep=-1)


def test_a_step_without_images_is_not_touched():
    memory = AgentMemory("", [ActionStep(1, observations="x")])
    forget_old_images(memory.steps[0], Agent(memory))
    assert memory.steps == [ActionStep(1, observations="x")]
