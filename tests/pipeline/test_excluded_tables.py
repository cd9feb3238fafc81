"""Tables that are excluded: neither loaded nor replicated, and complete after they are included again."""

from __future__ import annotations

from pathlib import Path

import pytest

from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.tables.buffers import TableBuffers
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import TABLES, replicate_for_warnings, replicate_once
from tests.postgres.servers import Database

OTHERS = ["public.customer", "public.orders"]


def published(db: Database) -> object:
    return db.value("SELECT string_agg(tablename, ',' ORDER BY tablename) FROM pg_publication_tables")


def test_an_excluded_table_is_not_published_not_loaded_and_said(shop: Database, tmp_path: Path) -> None:
    warnings = replicate_for_warnings(shop, tmp_path, exclude_tables=["audit,bare"])
    assert warnings == ["excluded, so neither loaded nor replicated: public.audit, public.bare; their stored rows stay"]
    assert published(shop) == "customer,orders"
    assert find_differences(shop.dsn, str(tmp_path), OTHERS) == {}
    assert not (tmp_path / "public" / "audit").exists()


def test_a_later_run_excludes_a_table_and_the_next_one_has_it_again(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    shop.execute("UPDATE audit SET what = 'before'")
    warnings = replicate_for_warnings(shop, tmp_path, exclude_tables=["audit"])
    assert [text for text in warnings if text.startswith("excluded, so neither loaded nor replicated: public.audit;")]
    assert published(shop) == "customer,orders"
    shop.execute("DELETE FROM audit WHERE ctid IN (SELECT ctid FROM audit LIMIT 3)", "DELETE FROM orders WHERE id < 9")
    replicate_for_warnings(shop, tmp_path, exclude_tables=["audit"])
    assert find_differences(shop.dsn, str(tmp_path), OTHERS) == {}
    assert find_differences(shop.dsn, str(tmp_path), ["public.audit"]) != {}
    assert "public.audit" not in State.read(Storage(str(tmp_path))).tables
    replicate_once(shop, tmp_path)
    assert published(shop) == "audit,customer,orders"
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}


class Killed(BaseException):
    pass


def test_changes_of_unreplicated_tables_in_a_users_publication_are_ignored(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute("CREATE PUBLICATION theirs FOR TABLE customer, orders, audit")

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        # The copies are there, and their buffered changes are not applied yet.
        patched.setattr(TableBuffers, "apply", killed)
        patched.setattr(TableBuffers, "apply_rest", killed)
        with pytest.raises(Killed):
            replicate_once(shop, tmp_path, publication="theirs")
    for change in ("UPDATE audit SET what = 'ignored'", "DELETE FROM orders WHERE id < 9"):
        shop.execute(change)
    replicate_for_warnings(shop, tmp_path, publication="theirs", exclude_tables=["audit"])
    assert published(shop) == "audit,customer,orders"
    assert find_differences(shop.dsn, str(tmp_path), OTHERS) == {}
    replicate_once(shop, tmp_path, publication="theirs")
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}
