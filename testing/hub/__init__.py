"""A Hub on the loopback interface: repositories with commits and tags, large files, and faults on demand.

with HubServer(faults={"tag": [Refused(500), None]}) as hub:
    HfApi(endpoint=hub.url, token=TOKEN).create_repo("user/mine", repo_type="dataset")
"""

from .server import TOKEN, WRITES, Exchange, HubServer
from .wire import CutUpload, Fault, Held, HtmlPage, LostReply, Plan, Refused, Tampered

__all__ = [
    "TOKEN",
    "WRITES",
    "CutUpload",
    "Exchange",
    "Fault",
    "Held",
    "HtmlPage",
    "HubServer",
    "LostReply",
    "Plan",
    "Refused",
    "Tampered",
]
