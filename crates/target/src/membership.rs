//! What the membership of one role in another gives it. From PostgreSQL 16 on that may be nothing: who makes
//! a role becomes a member of it who neither inherits its rights nor may become it.

const FROM_16_SQL: &str = "pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 160000";

/// The role of the first OID has the rights of the second, may become it, or could grant itself that. A
/// superuser acts as any.
pub(crate) fn acts_as_sql(role_oid: &str, other_oid: &str) -> String {
    format!(
        "pg_catalog.pg_has_role({role_oid}, {other_oid}, \
             CASE WHEN {FROM_16_SQL} THEN 'USAGE, SET, MEMBER WITH ADMIN OPTION' ELSE 'MEMBER' END)"
    )
}

/// Of two rows of `pg_roles`: the first is no superuser, who would be a member of all, and acts as the
/// second, a group that nobody logs in as. A role that logs in may have made others members of itself: that
/// says nothing of whom they trust.
pub(crate) fn is_of_group_sql(role: &str, group: &str) -> String {
    format!(
        "NOT {role}.rolsuper AND NOT {group}.rolcanlogin AND pg_catalog.pg_has_role({role}.oid, {group}.oid, \
             CASE WHEN {FROM_16_SQL} THEN 'USAGE, SET' ELSE 'MEMBER' END)"
    )
}
