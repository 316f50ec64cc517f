//! Connection service files: the section named by `service` or PGSERVICE gives defaults for keywords.
//! The user's file is searched first, then the system's. An unknown service, a nested one and LDAP
//! lookups are errors. Source: PostgreSQL documentation, "The Connection Service File".

use super::keyword;
use super::surroundings::Surroundings;
use super::words::Words;
use howdah_model::{Error, ErrorKind, Result};
use std::fs;
use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};

/// A service file is a page of text; anything longer than this is not one.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Where system-wide files are looked for without PGSYSCONFDIR: Debian's libpq, Red Hat's, others.
const SYSTEM_DIRECTORIES: &[&str] = &["/etc/postgresql-common", "/etc/sysconfig/pgsql", "/etc"];

/// Adds the service's values for keywords that `words` does not hold yet.
pub(super) fn apply(words: &mut Words, around: &Surroundings) -> Result<()> {
    let named = words.get("service").cloned().or_else(|| around.variable("PGSERVICE").map(str::to_owned));
    let Some(service) = named.filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    for file in candidate_files(words, around)? {
        let Some(text) = read_file(&file)? else { continue };
        if let Some(found) = section(&text, &service, &file)? {
            for (name, value) in found {
                words.entry(name).or_insert(value);
            }
            return Ok(());
        }
    }
    Err(Error::new(ErrorKind::Usage, format!("definition of service \"{service}\" not found"))
        .with_hint("add a section of this name to ~/.pg_service.conf or to the file in PGSERVICEFILE"))
}

fn candidate_files(words: &Words, around: &Surroundings) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let named = words.get("servicefile").map(String::as_str).or_else(|| around.variable("PGSERVICEFILE"));
    match (named, &around.home) {
        (Some(file), _) => {
            if !Path::new(file).exists() {
                return Err(Error::new(ErrorKind::Usage, format!("service file \"{file}\" not found")));
            }
            files.push(PathBuf::from(file));
        }
        (None, Some(home)) => files.push(home.join(".pg_service.conf")),
        (None, None) => {}
    }
    match around.variable("PGSYSCONFDIR") {
        Some(directory) => files.push(Path::new(directory).join("pg_service.conf")),
        None => files.extend(SYSTEM_DIRECTORIES.iter().map(|d| Path::new(d).join("pg_service.conf"))),
    }
    Ok(files)
}

/// The file's text; `None` if there is no such file.
fn read_file(file: &Path) -> Result<Option<String>> {
    let fail =
        |why: String| Error::new(ErrorKind::Usage, format!("service file \"{}\": {why}", file.display()));
    match fs::metadata(file) {
        Err(error) if matches!(error.kind(), IoKind::NotFound | IoKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(fail(error.to_string())),
        Ok(data) if data.len() > FILE_BYTES_MAX => return Err(fail("is larger than 1 MiB".to_owned())),
        Ok(_) => {}
    }
    fs::read_to_string(file).map(Some).map_err(|error| fail(error.to_string()))
}

/// The keywords of `[service]`; `None` if the file has no such section.
pub(super) fn section(text: &str, service: &str, file: &Path) -> Result<Option<Words>> {
    let mut found: Option<Words> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let fail = |why: &str| {
            let place = format!("service file \"{}\", line {}", file.display(), index + 1);
            Error::new(ErrorKind::Usage, format!("{place}: {why}"))
        };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if name.strip_suffix(']') == Some(service) {
                found = Some(Words::new());
            }
            continue;
        }
        let Some(words) = found.as_mut() else { continue };
        if line.starts_with("ldap") {
            return Err(fail("LDAP lookup of connection parameters is not supported"));
        }
        let (name, value) =
            line.split_once('=').ok_or_else(|| fail("syntax error, expected keyword=value"))?;
        if matches!(name, "service" | "servicefile") {
            return Err(fail("nested service specifications are not supported"));
        }
        let keyword =
            keyword::find(name).ok_or_else(|| fail(&format!("invalid connection option \"{name}\"")))?;
        // As in libpq, the first of several counts.
        words.entry(keyword.name).or_insert_with(|| value.to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::words;

    #[test]
    fn a_section_gives_its_keywords_and_only_its_own() {
        let text = "# c\n[a]\nhost=x\n[b]\nhost=y\nport=6543\nhost=second\n[c]\nhost=z\n";
        let words = section(text, "b", Path::new("f")).unwrap().unwrap();
        assert_eq!(
            words.into_iter().collect::<Vec<_>>(),
            [("host", "y".to_owned()), ("port", "6543".to_owned())]
        );
        assert!(section(text, "d", Path::new("f")).unwrap().is_none());
    }

    #[test]
    fn what_is_given_already_wins_over_the_service() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(".pg_service.conf"), "[s]\nhost=h\nport=1\n").unwrap();
        let around = Surroundings { home: Some(directory.path().into()), ..Surroundings::default() };
        let mut words = words::parse("service=s port=2").unwrap();
        apply(&mut words, &around).unwrap();
        assert_eq!((words["host"].as_str(), words["port"].as_str()), ("h", "2"));
    }

    #[test]
    fn an_unknown_service_or_keyword_is_an_error_with_its_place() {
        let error = section("[a]\nhos=x\n", "a", Path::new("f")).unwrap_err();
        assert!(error.message().starts_with("service file \"f\", line 2:"), "{error}");
        let around = Surroundings { home: None, ..Surroundings::default() };
        let mut words = words::parse("service=no_such_service").unwrap();
        assert_eq!(apply(&mut words, &around).unwrap_err().kind(), ErrorKind::Usage);
    }
}
