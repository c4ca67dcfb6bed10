"""A table that takes another's name has what readers need of that one, or it is named."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from databases.base.errors import DatabaseError


@pytest.fixture
def reader(server, sql, target):
    """A user who may read the target, and one column of it; gives what each may do."""
    name = f"shop.{target.table}"
    if server.is_postgres:
        for role in ("reader", "writer_of_one", "somebody", "keeper"):
            sql(f"DROP ROLE IF EXISTS {role}", f"CREATE ROLE {role}")
    else:
        for role in ("reader", "writer_of_one", "somebody"):
            sql(f"DROP USER IF EXISTS {role}@'%'", f"CREATE USER {role}@'%'")
    end = "" if server.is_postgres else "@'%'"

    def grant() -> None:
        sql(
            f"GRANT SELECT ON {name} TO reader{end} WITH GRANT OPTION",
            f"GRANT UPDATE (note) ON {name} TO writer_of_one{end}",
        )

    yield grant
    for role in ("reader", "writer_of_one", "somebody"):
        if server.is_postgres:
            sql(f"DROP OWNED BY {role}")
        sql(f"DROP {'ROLE' if server.is_postgres else 'USER'} {role}{end}")


def test_readers_are_not_locked_out(server, sql, table, writer, rebuilt, reader, target) -> None:
    """Rights on the table and on a column; nobody has more than before, whatever new tables are
    given by default."""
    name = f"shop.{target.table}"
    reader()
    if server.is_postgres:
        sql("ALTER DEFAULT PRIVILEGES IN SCHEMA shop GRANT ALL ON TABLES TO somebody")
    writer.swap(rebuilt())
    if server.is_postgres:
        found = sql(
            "SELECT grantee, privilege_type, is_grantable FROM"
            " information_schema.role_table_grants"
            f" WHERE table_name = '{target.table}' AND grantee IN ('reader', 'somebody')"
        )
        assert found == [("reader", "SELECT", "YES")]
        columns = sql(
            "SELECT grantee, column_name, privilege_type FROM"
            " information_schema.column_privileges"
            f" WHERE table_name = '{target.table}' AND grantee = 'writer_of_one'"
        )
        assert columns == [("writer_of_one", "note", "UPDATE")]
        sql("ALTER DEFAULT PRIVILEGES IN SCHEMA shop REVOKE ALL ON TABLES FROM somebody")
        return
    session = server.connect()
    grants = [line for (line,) in session.rows("SHOW GRANTS FOR reader@'%'")]
    assert any("GRANT SELECT ON `shop`" in line for line in grants)
    session.close()
    assert sql(f"SELECT count(*) FROM {name}") == [(2,)]


def test_a_comment_goes_over(server, sql, table, writer, rebuilt, target) -> None:
    """Of MySQL and MariaDB, where the stamp stands behind it. PostgreSQL's: see below."""
    if server.is_postgres:
        return
    sql(f"ALTER TABLE shop.{target.table} COMMENT = 'of mine, ''quoted'''")
    writer.swap(rebuilt())
    ((comment,),) = sql(
        f"SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_NAME = '{target.table}'"
    )
    assert comment.startswith("of mine, 'quoted' binlogd:")


def test_what_belongs_to_a_table_goes_over(server, sql, table, writer, rebuilt, target) -> None:
    """Owner, comments, storage options, statistics targets, replica identity, publications."""
    name = f"shop.{target.table}"
    if not server.is_postgres:
        return
    sql("DROP ROLE IF EXISTS owner_of_it", "CREATE ROLE owner_of_it")
    publications = (f"p_{target.table}", f"q_{target.table}")
    sql(
        "GRANT ALL ON SCHEMA shop TO owner_of_it",
        f"ALTER TABLE {name} OWNER TO owner_of_it",
        f"COMMENT ON TABLE {name} IS 'of mine, ''quoted'''",
        f"COMMENT ON COLUMN {name}.note IS 'a note'",
        f"ALTER TABLE {name} SET (fillfactor = 70, autovacuum_enabled = off,"
        " toast.autovacuum_enabled = off)",
        f"ALTER TABLE {name} ALTER COLUMN note SET STATISTICS 77",
        f"ALTER TABLE {name} ALTER COLUMN n SET (n_distinct = -0.5)",
        f"ALTER TABLE {name} REPLICA IDENTITY FULL",
        f"CREATE PUBLICATION {publications[0]} FOR TABLE {name} (id, note)",
        f"CREATE PUBLICATION {publications[1]} FOR TABLE {name} WHERE (id > 5)",
    )
    asked = (
        f"""SELECT pg_get_userbyid(c.relowner), obj_description(c.oid, 'pg_class'), c.reloptions,
        t.reloptions, c.relreplident, col_description(c.oid, 2),
        (SELECT array_agg(attstattarget::text || coalesce(attoptions::text, '') ORDER BY attnum)
         FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0)
        FROM pg_class c LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
        WHERE c.oid = '{name}'::regclass""",
        "SELECT pubname, attnames::text, rowfilter FROM pg_publication_tables"
        f" WHERE tablename = '{target.table}' ORDER BY 1",
    )
    before = [sql(one) for one in asked]
    assert len(before[1]) == 2
    writer.swap(rebuilt())
    assert [sql(one) for one in asked] == before
    sql(*(f"DROP PUBLICATION {one}" for one in publications))
    sql(f"ALTER TABLE {name} OWNER TO CURRENT_USER", "DROP OWNED BY owner_of_it")
    sql("DROP ROLE owner_of_it")


def test_what_does_not_go_over_is_named(server, sql, table, writer, rebuilt, target) -> None:
    """Indexes, constraints, defaults and the like are to be recreated; so it is said when the
    tables are exchanged."""
    name = f"shop.{target.table}"
    session = server.connect()
    assert session.left_behind(target) == []
    sql(
        f"CREATE INDEX by_n ON {name} (n)",
        f"ALTER TABLE {name} ADD CONSTRAINT positive CHECK (id > 0)",
        f"ALTER TABLE {name} ALTER COLUMN n SET DEFAULT 5",
    )
    left = session.left_behind(target)
    assert {"index by_n", "constraint positive"} <= set(left)
    assert any(line.startswith("default ") and line.endswith(" of n") for line in left)
    if server.is_postgres:
        sql(f"CREATE STATISTICS shop.st_{target.table} ON id, n FROM {name}")
        assert f"statistics st_{target.table}" in session.left_behind(target)
    session.close()
    swap = rebuilt()
    with capture_logs() as logs:
        writer.swap(swap)
    (told,) = [one for one in logs if one["event"] == "left_behind"]
    assert {"index by_n", "constraint positive"} <= set(told["to_be_made_again"])


def test_rights_that_can_t_be_given_leave_the_old_table(
    server, sql, table, writer, rebuilt, target
) -> None:
    """The exchange is refused whole: the old table has its name, its rows and its readers."""
    if not server.is_postgres:
        return
    name = f"shop.{target.table}"
    sql("DROP ROLE IF EXISTS plain_one", "CREATE ROLE plain_one")
    sql("GRANT ALL ON SCHEMA shop, binlogd TO plain_one", f"GRANT ALL ON {name} TO plain_one")
    swap = rebuilt()
    session = writer.tables.session
    session.run("SET ROLE plain_one")
    with pytest.raises(Exception, match=r"(must be owner|permission denied)"):
        writer.swap(swap)
    session.run("RESET ROLE")
    assert sql(f"SELECT note FROM {name} ORDER BY id") == [("a",), ("b",)]
    sql("DROP OWNED BY plain_one", "DROP ROLE plain_one")
    with pytest.raises(DatabaseError):
        sql("SET ROLE plain_one")


def test_rows_that_readers_may_not_see_stay_hidden(
    server, sql, table, writer, rebuilt, reader, target
) -> None:
    """Rights go over, and so do the policies that bound them."""
    if not server.is_postgres:
        return
    name = f"shop.{target.table}"
    reader()
    sql(
        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY",
        f'CREATE POLICY "of ""one""" ON {name} FOR SELECT TO reader, somebody USING (id < 2)',
        f"CREATE POLICY b ON {name} AS RESTRICTIVE FOR UPDATE USING (id > 0) WITH CHECK (n < 5)",
        f"CREATE POLICY c ON {name} FOR INSERT WITH CHECK (note = 'it''s')",
    )
    asked = (
        f"SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = '{name}'::regclass",
        "SELECT policyname, permissive, roles::text, cmd, qual, with_check FROM pg_policies"
        f" WHERE tablename = '{target.table}' ORDER BY 1",
    )
    before = [sql(one) for one in asked]
    assert (before[0], len(before[1])) == ([(True, True)], 3)
    writer.swap(rebuilt())
    assert [sql(one) for one in asked] == before
    session = server.connect()
    session.run("SET row_security = on")
    session.run("GRANT USAGE ON SCHEMA shop TO reader")
    session.run("SET ROLE reader")
    assert session.rows(f"SELECT id FROM {name}") == [(1,)]
    session.close()
    sql("REVOKE USAGE ON SCHEMA shop FROM reader")


def test_an_owner_who_may_be_given_no_table_is_told_before_anything_is_read(
    server, sql, table, writer, rebuilt, target
) -> None:
    """The exchange would be refused: it is what the table has had since a right was taken away."""
    if not server.is_postgres:
        return
    sql("DROP ROLE IF EXISTS former", "DROP ROLE IF EXISTS loader", "CREATE ROLE former")
    sql(
        "CREATE ROLE loader IN ROLE former",
        "GRANT ALL ON SCHEMA shop, binlogd TO loader",
        "GRANT ALL ON ALL TABLES IN SCHEMA binlogd TO loader",
        "GRANT ALL ON SCHEMA shop TO former",
        f"ALTER TABLE shop.{target.table} OWNER TO former",
        "REVOKE ALL ON SCHEMA shop FROM former",
    )
    swap = rebuilt()
    sql(f"ALTER TABLE shop.{swap.new.table} OWNER TO loader")
    session = writer.tables.session
    session.run("SET ROLE loader")
    (said,) = session.lacks(swap.old, swap.new, swap.aside)
    assert "GRANT CREATE ON SCHEMA" in said
    with pytest.raises(Exception, match="permission denied for schema shop"):
        writer.swap(swap)
    session.run("RESET ROLE")
    sql("GRANT CREATE ON SCHEMA shop TO former")
    session.run("SET ROLE loader")
    assert session.lacks(swap.old, swap.new, swap.aside) == []
    writer.swap(swap)
    session.run("RESET ROLE")
    sql(f"ALTER TABLE shop.{target.table} OWNER TO CURRENT_USER")
    sql(*(f"DROP OWNED BY {role}" for role in ("loader", "former")), "DROP ROLE loader, former")


def test_what_a_new_table_is_not_given_is_named(server, sql, table, writer, target) -> None:
    """What makes the table itself another one, too."""
    if not server.is_postgres:
        return
    name, session = f"shop.{target.table}", server.connect()
    sql(
        f"ALTER TABLE {name} ADD COLUMN own bigint GENERATED ALWAYS AS IDENTITY",
        f"CREATE RULE quiet AS ON DELETE TO {name} WHERE false DO INSTEAD NOTHING",
        f"ALTER TABLE {name} SET UNLOGGED",
        f"CREATE INDEX sorted ON {name} (n)",
        f"ALTER TABLE {name} CLUSTER ON sorted",
    )
    left = set(session.left_behind(target))
    session.close()
    assert {"identity of own", "rule quiet", "UNLOGGED", "CLUSTER ON sorted"} <= left
