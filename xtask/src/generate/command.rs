//! `docs/reference/command.md`: every subcommand and option, from the clap declarations that also make
//! `--help`, the man page and the completions.

use clap::{Arg, Command, CommandFactory};
use howdah_cli::options::Options;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# The command

Sizes are written as PostgreSQL writes them: `16MB`, `1GB` (powers of 1024), or a bare number of bytes; times as `30s`,
`10min`, or a bare number of seconds. Options that take one byte accept `\\t`, `\\b`, `\\f`, `\\v` and `\\x1f`. Every
subcommand has `--help` and `--version`; `howdah man` prints the same as a manual page, `howdah completions bash` for the
shell. How the command ends: [exit-codes.md](exit-codes.md). Variables: [environment.md](environment.md).
";

const CHECK: &str = "
Takes the options of `howdah load` but for those about rows that are stored. These are refused on the command line, or change
nothing there, and change nothing in a job file: ";

const BENCH: &str = "
Takes the options of `howdah load`, of one source that is no pipe. All loads go into a schema of its own, which is dropped
at the end; `--table` gives the shape of the tables in it, and its table is not touched. Without `--table` a table is made
from the data. The ledger is made in the same schema, whatever schema `--ledger` names. What is about jobs of a ledger is refused on the command line
(`--job-id`, `--force`, `--known`, `--if-done`, `--rejects`, `--reject-file`), and changes nothing in a job file. And:

";

pub(super) fn page() -> String {
    let mut command = Options::command();
    command.build();
    let mut page = INTRODUCTION.to_owned();
    // Writing to a String cannot fail, here and below.
    let _ = write!(page, "\nhowdah: {}.\n", help_of(&command));
    subcommands(&command, "howdah", &mut page);
    page
}

fn help_of(command: &Command) -> String {
    command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default()
}

fn subcommands(command: &Command, path: &str, page: &mut String) {
    for each in command.get_subcommands().filter(|each| each.get_name() != "help") {
        let path = format!("{path} {}", each.get_name());
        let _ = write!(page, "\n## {path}\n\n{}.\n", help_of(each));
        if each.has_subcommands() {
            subcommands(each, &path, page);
            continue;
        }
        if each.get_name() == "plan" {
            page.push_str("\nTakes the options of `howdah load`; `--json` prints the plan. It changes nothing; where nothing names a server it looks at the embedded one, if that was made before.\n");
            continue;
        }
        let usage = each.clone().render_usage().to_string();
        let _ = write!(page, "\n    {}\n", usage.trim_start_matches("Usage: ").trim());
        if each.get_name() == "bench" {
            page.push_str(BENCH);
            let own = each.get_arguments().filter(|arg| arg.get_long() == Some("rounds"));
            own.for_each(|arg| argument(arg, page));
            continue;
        }
        if each.get_name() == "check" {
            let hidden = each.get_arguments().filter(|arg| arg.is_hide_set());
            let names: Vec<String> =
                hidden.filter_map(|arg| Some(format!("`--{}`", arg.get_long()?))).collect();
            let _ = writeln!(page, "{CHECK}{}.", names.join(", "));
            continue;
        }
        arguments(each, page);
    }
}

fn arguments(command: &Command, page: &mut String) {
    let shown = || command.get_arguments().filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version"));
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in shown() {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        if let Some(heading) = heading {
            let _ = write!(page, "\n**{heading}**\n");
        }
        page.push('\n');
        shown().filter(|arg| arg.get_help_heading() == heading).for_each(|arg| argument(arg, page));
    }
}

fn argument(arg: &Arg, page: &mut String) {
    let _ = writeln!(page, "- {}: {}", signature(arg), help(arg));
}

/// `-t, --table <NAME>` or `[SOURCE]...`, as clap itself writes it.
fn signature(arg: &Arg) -> String {
    if arg.is_positional() {
        return format!("`{arg}`");
    }
    match arg.get_short() {
        Some(short) => format!("`-{short}, {arg}`"),
        None => format!("`{arg}`"),
    }
}

fn help(arg: &Arg) -> String {
    let mut help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| arg.get_action().takes_values() && !value.is_hide_set())
        .map(|value| match value.get_help() {
            Some(meaning) => format!("`{}` ({})", value.get_name(), within_a_sentence(&meaning.to_string())),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !values.is_empty() {
        let _ = write!(help, "; one of {}", values.join(", "));
    }
    help
}

/// A help text behind a word: its first letter is small, unless it begins a name (COPY, U+FFFD).
fn within_a_sentence(help: &str) -> String {
    let mut letters = help.chars();
    match letters.next() {
        Some(first)
            if letters.clone().next().is_some_and(|second| second.is_lowercase() || second == ' ') =>
        {
            first.to_lowercase().chain(letters).collect()
        }
        _ => help.to_owned(),
    }
}

/// The help text of an option of `howdah load`, for the pages that speak of the same options.
pub(super) fn help_of_load_option(name: &str) -> Option<String> {
    let mut command = Options::command();
    command.build();
    let load = command.find_subcommand("load")?;
    load.get_arguments().find(|arg| arg.get_long() == Some(name)).map(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_and_option_is_on_the_page() {
        let page = page();
        for name in ["## howdah load", "## howdah pg psql", "`-j, --jobs <N|auto>`", "`[SOURCE]...`"] {
            assert!(page.contains(name), "{name} is missing:\n{page}");
        }
        let mut command = Options::command();
        command.build();
        for arg in command.find_subcommand("load").unwrap().get_arguments() {
            if let Some(long) = arg.get_long() {
                assert!(page.contains(&format!("--{long}")), "{long}");
            }
        }
        assert!(page.contains("- `--rounds <N>`"), "{page}");
    }

    #[test]
    fn names_keep_their_capitals() {
        assert_eq!(within_a_sentence("They fire for each row"), "they fire for each row");
        assert_eq!(within_a_sentence("A number"), "a number");
        for name in ["COPY text", "U+FFFD takes the place of each", "VACUUM (FREEZE, ANALYZE)", ""] {
            assert_eq!(within_a_sentence(name), name);
        }
    }

    #[test]
    fn plan_takes_the_options_of_load() {
        let mut command = Options::command();
        command.build();
        let names = |verb| {
            let arguments = command.find_subcommand(verb).unwrap().get_arguments();
            arguments.map(|arg| arg.get_id().as_str()).collect::<Vec<_>>()
        };
        assert_eq!(names("load"), names("plan"));
    }
}
