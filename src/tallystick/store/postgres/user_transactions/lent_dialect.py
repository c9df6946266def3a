"""SQLAlchemy on a connection that is lent: it neither begins, ends nor closes anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.pool import NullPool

from tallystick.store.postgres.server.connection import AnsweringConnection


class LentDialect(PGDialect_psycopg):
    """psycopg's dialect, for a transaction whose bounds are ours."""

    supports_statement_cache = True

    def do_begin(self, dbapi_connection: Any) -> None:  # noqa: ANN401 (as the base class has it)
        """Do nothing: it has begun."""

    def do_commit(self, dbapi_connection: Any) -> None:  # noqa: ANN401 (as above)
        """Refuse it to the user's function; afterwards it is ours."""
        dbapi_connection.refuse_bound("commit")

    def do_rollback(self, dbapi_connection: Any) -> None:  # noqa: ANN401 (as above)
        """Refuse it to the user's function, which raises instead; afterwards it is ours."""
        dbapi_connection.refuse_bound("rollback")

    def do_close(self, dbapi_connection: Any) -> None:  # noqa: ANN401 (as above)
        """Do nothing: it is lent."""


def make_engine(lent: Callable[[], AnsweringConnection]) -> Engine:
    """Return an engine that asks for the lent connection whenever it needs one."""
    registry.register("postgresql.tallystick", __name__, "LentDialect")
    return create_engine("postgresql+tallystick://", creator=lent, poolclass=NullPool)
