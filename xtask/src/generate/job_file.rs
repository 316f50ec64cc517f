//! `docs/reference/job-file.md`: the names a job file may hold. The meanings are those of the options of
//! `howdah load`; a test reads a file with every name, so that the list is the one the command takes.

use super::command::help_of_load_option;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# The job file

`howdah load --job FILE` reads sources, tables and options from a TOML file, for loads of many files into many tables and
for loads that are run again and again. Names are those of the options of `howdah load`; an unknown name is an error with
its line. The command line wins over the file, and `--lenient=false` and the like switch off what the file switches on: sources given there
replace all of the file's, `--table` stands in place of the tables of its sources where these are one, `--copy-options` there leaves out all of the file's options of COPY, and `--map` and `--types` there come on top of
the file's `[map]` and `[types]`, in place of what these say of the same field or column; `--columns` leaves out the file's `[map]`, and
`--map` its `columns`. Names in `[map]` and `[types]` may hold any character. Where the file has `copy-options`, single options
of COPY (`format`, `delimiter` and the like) are an error, in the file and on the command line. Paths are taken from the directory
the command is run in, not from that of the file.

```toml
to = \"service=warehouse\"
copy-options = \"(FORMAT csv, HEADER true, DELIMITER E'\\\\t')\"
jobs = \"auto\"

[[source]]
location = \"s3://shop/orders.tsv.gz\"
table = \"staging.orders\"

[[source]]
location = \"s3://shop/parts/{table}-*.tsv.gz\"
table = \"staging.{table}\"
```

Keep passwords out of it: `.pgpass`, `pg_service.conf` and the AWS profile files are read as usual.

| name | example | meaning |
| --- | --- | --- |
";

/// Name and an example of its value; the meaning is that of the option.
const NAMES: &[(&str, &str)] = &[
    ("to", "\"postgresql://loader@db.example/warehouse\""),
    ("ledger", "\"howdah\""),
    ("table", "\"staging.title\""),
    ("format", "\"csv\""),
    ("delimiter", "\"\\t\""),
    ("quote", "\"'\""),
    ("escape", "\"\\\\\""),
    ("null", "[\"NA\", \"-\"]"),
    ("header", "true"),
    ("encoding", "\"LATIN1\""),
    ("force-null", "[\"a\", \"b\"]"),
    ("force-not-null", "[\"c\"]"),
    ("default", "\"\\\\D\""),
    ("copy-options", "\"(FORMAT csv, HEADER true)\""),
    ("columns", "[\"a\", \"b\"]"),
    ("map", "{ \"file col\" = \"db_col\" }"),
    ("ignore-extra", "true"),
    ("create", "true"),
    ("types", "{ code = \"varchar(5)\", day = \"date:d/m/y\" }"),
    ("names", "\"keep\""),
    ("primary-key", "[\"id\"]"),
    ("evolve", "\"add\""),
    ("lenient", "true"),
    ("all-tables", "true"),
    ("jobs", "4"),
    ("memory", "\"256MB\""),
    ("chunk-size", "\"16MB\""),
    ("encode", "\"text\""),
    ("toast-compression", "\"keep\""),
    ("partitions", "\"parent\""),
    ("create-partitions", "\"day\""),
    ("after", "[\"vacuum\", \"checkpoint\"]"),
    ("indexes", "\"rebuild\""),
    ("triggers", "\"disable\""),
    ("sequences", "\"keep\""),
    ("on-error", "\"skip\""),
    ("nul", "\"strip\""),
    ("max-errors", "\"0.5%\""),
    ("mode", "\"merge\""),
    ("key", "[\"id\"]"),
    ("delete-missing", "true"),
    ("keep", "\"last\""),
    ("atomic", "true"),
    ("freeze", "true"),
    ("lock-timeout", "\"5s\""),
    ("job-id", "\"nightly-2026-11-21\""),
    ("known", "\"skip\""),
    ("if-done", "\"ok\""),
    ("retry-for", "\"10min\""),
    ("tune", "\"server\""),
    ("max-replica-lag", "\"1GB\""),
    ("reserve-connections", "3"),
    ("pause-for", "\"10min\""),
    ("max-decompressed", "\"100GB\""),
    ("verify", "\"checksum\""),
];

/// What help says for a shell, and what a file has in its place.
const NOT_FOR_FILES: [(&str, &str); 2] = [
    ("columns", "; a name that holds a comma in double quotes, as in csv"),
    ("map", "; may be given many times"),
];

/// Options of `howdah load` that a job file does not have: they belong to one run.
const NOT_IN_FILES: [&str; 9] = [
    "job",
    "password",
    "no-password",
    "password-command",
    "reject-file",
    "rejects",
    "force",
    "quiet",
    "json",
];

pub(super) fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (name, example) in NAMES {
        let mut help = help_of_load_option(name).unwrap_or_default().replace('|', "\\|");
        for (_, words) in NOT_FOR_FILES.iter().filter(|(of, _)| of == name) {
            help = help.replace(words, "");
        }
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{name}` | `{example}` | {help} |");
    }
    page.push_str("| `[[source]]` | | One for each source, with `location` and, where it differs from the job's, `table` |\n");
    let left_out: Vec<String> = NOT_IN_FILES.iter().map(|name| format!("`--{name}`")).collect();
    let _ = write!(page, "\n{} are options of the command line alone.\n", left_out.join(", "));
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};
    use howdah_cli::options::{Command, LoadOptions, Options};

    fn read(text: &str) -> howdah_model::Result<Vec<howdah_model::SourceSpec>> {
        let file = std::env::temp_dir().join(format!("howdah-job-{}.toml", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let read = howdah_cli::job_file::read(&file, &mut options());
        std::fs::remove_file(&file).unwrap();
        read
    }

    fn options() -> LoadOptions {
        match Options::parse_from(["howdah", "load"]).command {
            Command::Load(options) => *options,
            _ => unreachable!(),
        }
    }

    #[test]
    fn a_job_file_takes_every_name_on_the_page_and_no_other() {
        // Which contradicts the single options.
        let (list, rest): (Vec<_>, Vec<_>) = NAMES.iter().partition(|(name, _)| *name == "copy-options");
        let sources = "[[source]]\nlocation = \"a\"\ntable = \"t\"";
        for names in [list, rest] {
            let lines: Vec<String> =
                names.iter().map(|(name, example)| format!("{name} = {example}")).collect();
            assert_eq!(read(&format!("{}\n{sources}", lines.join("\n"))).unwrap().len(), 1);
        }
        for name in NOT_IN_FILES {
            assert!(read(&format!("{name} = true")).is_err(), "{name}");
        }
        let mut command = Options::command();
        command.build();
        for arg in command.find_subcommand("load").unwrap().get_arguments() {
            let Some(long) = arg.get_long().filter(|long| !matches!(*long, "help" | "version")) else {
                continue;
            };
            assert!(NAMES.iter().any(|(name, _)| *name == long) || NOT_IN_FILES.contains(&long), "{long}");
        }
    }
}
