"""A scripted model server for tests, on the loopback interface: chat, vectors, pictures and videos."""

from .answers import Answer as Answer
from .answers import Picture as Picture
from .answers import Problem as Problem
from .answers import from_schema as from_schema
from .answers import plain_png as plain_png
from .answers import plain_video as plain_video
from .asked import Asked as Asked
from .asked import count_tokens as count_tokens
from .asked import key_of as key_of
from .batches import Fate as Fate
from .batches import Made as Made
from .faults import *  # noqa: F403 - every fault, all that stands there
from .log import Exchange as Exchange
from .openai_wire import word_vector as word_vector
from .scripts import FaultPlan as FaultPlan
from .scripts import read_fault as read_fault
from .scripts import read_plan as read_plan
from .scripts import scripted as scripted
from .server import ModelServer as ModelServer
