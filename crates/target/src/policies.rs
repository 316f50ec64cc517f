//! Tables whose row-level security applies to the role: the server takes no COPY into them. Rows of a chunk
//! are copied into a temporary table and come from there by INSERT, in the same transaction, so that each row
//! meets the policies.

use crate::copy::aim;
use crate::error::session_error;
use crate::session::rights::{Who, refusal, who};
use crate::session::{Session, toast};
use crate::sql::{quote_columns, quote_ident, quote_relation};
use howdah_model::plan::PoliciesPlan;
use howdah_model::{Arrival, Error, Mode, Relation, Result, Table, TablePlan};
use tokio_postgres::types::{ToSql, Type};

const ASK_SQL: &str = "\
    SELECT pg_catalog.row_security_active(c.oid), pg_catalog.current_setting('row_security')::pg_catalog.bool, \
           pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY') \
    FROM pg_catalog.pg_class c WHERE c.oid = $1";

/// The policies for the commands `$2` that apply to the role: names, whether they allow something or only
/// restrict, commands.
const NAMED_SQL: &str = "\
    SELECT p.polname::pg_catalog.text, p.polpermissive, p.polcmd::pg_catalog.text FROM pg_catalog.pg_policy p \
    WHERE p.polrelid = $1 AND (p.polcmd = '*' OR p.polcmd::pg_catalog.text = ANY ($2)) \
      AND EXISTS (SELECT FROM pg_catalog.unnest(p.polroles) AS r (oid) \
                  WHERE r.oid = 0::pg_catalog.oid OR pg_catalog.pg_has_role(r.oid, 'USAGE')) \
    ORDER BY 1";

/// What a role may do with a table that has policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policies {
    /// None applies to it.
    Bypassed,
    /// Each row is to meet them.
    Apply {
        /// The role may make temporary tables.
        temporary: bool,
        /// The policies that rows meet which come in this way.
        names: Vec<String>,
        /// What none of them lets the role do, though rows that come in this way do it.
        lacking: Vec<&'static str>,
    },
}

/// Asks whether policies of the table apply to the role.
///
/// # Errors
/// Table, where they do and the session's `row_security` forbids to be subject to any, or none lets a row in;
/// those of the session.
pub async fn ask(session: &Session, table: &Table, arrival: &Arrival) -> Result<Policies> {
    let rows = session.rows(ASK_SQL, &[(&table.oid, Type::OID)], "asking for row-level security").await?;
    let Some(row) = rows.first().filter(|row| row.get(0)) else { return Ok(Policies::Bypassed) };
    if row.get(1) {
        return met(session, table, arrival, row.get(2)).await;
    }
    let (relation, Who { role, login, .. }) = (&table.relation, who(session).await?);
    let message = format!(
        "row-level security of {relation} applies to role {role}, and row_security = off forbids to be subject to it"
    );
    Err(refusal(message).with_hint(format!(
        "load as a role with BYPASSRLS, or with row_security on: ALTER ROLE {} SET row_security = on, or PGOPTIONS",
        quote_ident(&login)
    )))
}

/// What rows that come in this way are subject to: commands as the catalog has them, and in words what none
/// of their policies lets the role do.
fn commands(arrival: &Arrival) -> Vec<(&'static str, &'static str)> {
    let merges = arrival.mode == Mode::Merge;
    let all = [
        (true, ("a", "insert rows")),
        (arrival.has_key(), ("r", "see rows (SELECT)")),
        (merges, ("w", "change rows (UPDATE)")),
        (arrival.delete_missing, ("d", "delete rows (DELETE)")),
    ];
    all.into_iter().filter(|(is_used, _)| *is_used).map(|(_, command)| command).collect()
}

async fn met(session: &Session, table: &Table, arrival: &Arrival, temporary: bool) -> Result<Policies> {
    let commands = commands(arrival);
    let letters: Vec<&str> = commands.iter().map(|(letter, _)| *letter).collect();
    let asked = [(&table.oid as &(dyn ToSql + Sync), Type::OID), (&letters, Type::TEXT_ARRAY)];
    let rows = session.rows(NAMED_SQL, &asked, "asking for row-level security").await?;
    let lets = |letter: &str| {
        rows.iter().any(|row| row.get(1) && matches!(row.get::<_, &str>(2), of if of == "*" || of == letter))
    };
    // A merge may have rows to change alone.
    if !(lets("a") || letters.contains(&"w") && lets("w")) {
        return Err(lets_none_in(session, &table.relation).await?);
    }
    let lacking = commands.into_iter().filter(|(letter, _)| !lets(letter)).map(|(_, what)| what).collect();
    Ok(Policies::Apply { temporary, names: rows.iter().map(|row| row.get(0)).collect(), lacking })
}

async fn lets_none_in(session: &Session, relation: &Relation) -> Result<Error> {
    let Who { role, .. } = who(session).await?;
    let message = format!(
        "row-level security of {relation} applies to role {role}, and no policy lets the role insert rows: all would be refused"
    );
    Ok(refusal(message).with_hint(format!(
        "the owner can run CREATE POLICY ... ON {} FOR INSERT TO {} WITH CHECK (...); or load as a role with BYPASSRLS",
        quote_relation(relation),
        quote_ident(&role)
    )))
}

/// Has the plan's rows go through a temporary table, which keeps values as their table does.
///
/// # Errors
/// Internal, for a plan whose statements are not those of its table; those of the session.
pub async fn go_through(session: &Session, table: &mut TablePlan) -> Result<()> {
    let relation = Relation { schema: "pg_temp".to_owned(), name: "howdah_rows".to_owned() };
    let from = table.copied_into().clone();
    aim(table, &from, &relation)?;
    (table.number, table.route) = (None, None);
    let columns: Vec<String> = table.fields.iter().flatten().cloned().collect();
    let is_identity =
        |name: &String| table.table.columns.iter().any(|column| column.name == *name && column.identity);
    // As COPY does, whose values are taken whatever the column says.
    let overriding = if columns.iter().any(is_identity) { " OVERRIDING SYSTEM VALUE" } else { "" };
    let (into, listed) = (quote_relation(&table.table.relation), quote_columns(&columns));
    let kept = toast::kept_as(session.client(), &into, &columns).await;
    let kept = kept.map_err(|error| session_error(&error, "reading how the table's columns keep values"))?;
    table.policies = Some(PoliciesPlan {
        // WITH NO DATA nothing is read, and no right to read is asked for.
        make_sql: format!(
            "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {listed} FROM {into} WITH NO DATA{}",
            quote_ident(&relation.name),
            toast::keep_so_sql(&quote_relation(&relation), &kept)
        ),
        insert_sql: format!(
            "INSERT INTO {into} ({listed}){overriding} SELECT {listed} FROM {}",
            quote_relation(&relation)
        ),
        relation,
    });
    Ok(())
}

/// Has the plan's rows go straight to their table, as before [`go_through`].
///
/// # Errors
/// As [`go_through`].
pub fn go_straight(table: &mut TablePlan) -> Result<()> {
    let Some(policies) = table.policies.take() else { return Ok(()) };
    let to = table.stored_in().clone();
    aim(table, &policies.relation, &to)
}

/// The role may not make the temporary table.
///
/// # Errors
/// Those of the session; otherwise this is the error.
pub async fn no_temporary(session: &Session, relation: &Relation) -> Result<Error> {
    let Who { role, database, .. } = who(session).await?;
    let message = format!(
        "row-level security of {relation} applies to role {role}: its rows go through a temporary table, which the role may not \
         make in database {database}"
    );
    Ok(refusal(message).with_hint(format!(
        "the owner can run GRANT TEMPORARY ON DATABASE {} TO {}; or load as a role with BYPASSRLS",
        quote_ident(&database),
        quote_ident(&role)
    )))
}

/// A new table has no policies until it takes the place of the old one.
///
/// # Errors
/// Those of the session; otherwise this is the error.
pub async fn no_replacement(session: &Session, relation: &Relation) -> Result<Error> {
    let Who { role, .. } = who(session).await?;
    let message = format!(
        "row-level security of {relation} applies to role {role}, and rows of a new table would not meet its policies"
    );
    Ok(refusal(message)
        .with_hint("give --mode truncate or merge --delete-missing, or load as a role with BYPASSRLS"))
}
