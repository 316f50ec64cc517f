//! A gate at which a load stands still, however fast it or slow the machine is, until the test opens it.

use howdah_testkit::Database;

/// Loads of this database wait at the claim of a chunk while so many chunks of their job are stored or
/// claimed. They hold no lock on their table there. With `--jobs 2`, one more may come in.
pub(crate) fn shut_gate_behind(database: &Database, chunks: u64) {
    database.sql(&format!(
        "CREATE TABLE public.gate AS SELECT {chunks} AS chunks, NULL::text AS job_id; \
         CREATE FUNCTION public.gate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
             WHILE EXISTS (SELECT FROM public.gate g WHERE coalesce(g.job_id, NEW.job_id) = NEW.job_id \
                           AND g.chunks <= (SELECT count(*) FROM howdah.chunk c WHERE c.job_id = NEW.job_id)) \
             LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END $$; \
         CREATE FUNCTION public.set_gate() RETURNS void LANGUAGE plpgsql AS $$ BEGIN \
             CREATE TRIGGER gate BEFORE INSERT ON howdah.chunk FOR EACH ROW EXECUTE FUNCTION public.gate(); \
             ALTER TABLE howdah.chunk ENABLE ALWAYS TRIGGER gate; END $$; \
         CREATE FUNCTION public.set_gate_later() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = 'howdah.chunk') \
             THEN PERFORM public.set_gate(); END IF; END $$; \
         DO $$ BEGIN IF to_regclass('howdah.chunk') IS NOT NULL THEN PERFORM public.set_gate(); END IF; END $$; \
         CREATE EVENT TRIGGER gate ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION public.set_gate_later()"
    ));
}

/// Only the jobs that are in the ledger by now wait.
pub(crate) fn let_other_jobs_pass(database: &Database) {
    database.sql("WITH old AS (DELETE FROM public.gate RETURNING chunks) INSERT INTO public.gate SELECT chunks, job_id FROM old, howdah.job");
}

/// So many chunks may come in.
pub(crate) fn move_gate_behind(database: &Database, chunks: u64) {
    database.sql(&format!("UPDATE public.gate SET chunks = {chunks}"));
}

/// Opens it, and takes it away where schemas are compared with what was before.
pub(crate) fn remove_gate(database: &Database) {
    open_gate(database);
    database.sql(
        "DROP EVENT TRIGGER gate; DROP FUNCTION public.gate() CASCADE; DROP FUNCTION public.set_gate(), public.set_gate_later(); \
         DROP TABLE public.gate",
    );
}

/// The loads go on. The session of one that was killed ends only then.
pub(crate) fn open_gate(database: &Database) {
    database.sql("DELETE FROM public.gate");
}
