//! Checks where the platform is and how a device gets in.

use std::str::FromStr;

use http::{HeaderName, HeaderValue, Uri};

use super::Check;
use crate::scenario::file::TargetFile;
use crate::scenario::people::People;
use crate::scenario::plan::{Place, Target, Token};
use crate::scenario::topology::PLATFORM;
use crate::template;

const MAX_FRAME_BYTES: u64 = 64 * 1024 * 1024;

/// What there is to fill placeholders with.
#[derive(Debug, Clone, Copy)]
struct Known<'a> {
    people: Option<&'a People>,
    has_platform: bool,
    token: bool,
}

impl Check<'_> {
    pub(super) fn target(&mut self, file: &TargetFile, people: Option<&People>, has_platform: bool) -> Target {
        if file.connect_timeout.0.is_zero() {
            self.report("target.connect_timeout", "must be longer than 0s");
        }
        let mut source_ips = Vec::new();
        for (i, text) in file.source_ips.iter().enumerate() {
            match text.parse() {
                Ok(ip) => source_ips.push(ip),
                Err(_) => self.report(&format!("target.source_ips[{i}]"), format!("'{text}' is no IP address")),
            }
        }
        for (name, value) in &file.headers {
            if HeaderName::from_str(name).is_err() {
                self.report(&format!("target.headers.{name}"), "is no valid HTTP header name");
            } else if HeaderValue::from_str(value).is_err() {
                self.report(&format!("target.headers.{name}"), "has a character that HTTP headers must not have");
            }
        }
        let mut known = Known { people, has_platform, token: false };
        let token = self.token(file, known);
        known.token = token.is_some();
        for (section, entries) in [("headers", &file.headers), ("query", &file.query)] {
            for (name, value) in entries {
                self.placeholders(&format!("target.{section}.{name}"), value, known);
            }
        }
        let max_frame = self.whole("target.max_frame_bytes", file.max_frame_bytes, 1024..=MAX_FRAME_BYTES);
        Target {
            place: self.place(file),
            protocol: file.protocol,
            headers: file.headers.clone().into_iter().collect(),
            query: file.query.clone().into_iter().collect(),
            token,
            connect_timeout: file.connect_timeout.0,
            source_ips,
            ca_file: (!file.ca_file.is_empty()).then(|| file.ca_file.clone().into()),
            max_frame_bytes: max_frame as usize,
        }
    }

    /// `known` is what fills the placeholders of an address, which a token cannot.
    fn token(&mut self, file: &TargetFile, known: Known<'_>) -> Option<Token> {
        let has_column = known.people.is_some_and(|people| people.has_column("token"));
        let (key, token) = match (file.token_command.trim(), file.token_url.as_str()) {
            ("", "") => return None,
            (command, "") => ("target.token_command", Token::Command(command.to_owned())),
            ("", url) => ("target.token_url", Token::Url(url.to_owned())),
            _ => {
                self.report("target.token_url", "and target.token_command both make {token}; leave one of them out");
                return None;
            }
        };
        if has_column {
            self.report(
                key,
                "makes {token}, and population.users_file has a column 'token' too; leave one of them out",
            );
        }
        if let Token::Url(url) = &token {
            self.placeholders(key, url, known);
            let filled = template::fill(url, |_| Some("x"));
            let uri = filled.parse::<Uri>().ok();
            if !uri
                .is_some_and(|uri| uri.scheme_str() == Some("http") && uri.host().is_some_and(|host| !host.is_empty()))
            {
                let message = "is no http:// address; write \"http://host:port/token?user={user}\", or fetch it with \
                               token_command = \"curl …\"";
                self.report(key, message);
            }
        }
        Some(token)
    }

    /// That something fills every placeholder of `template`, for every account.
    fn placeholders(&mut self, path: &str, template: &str, known: Known<'_>) {
        for name in template::placeholders(template) {
            if name == "user" || name == "device" || (name == "token" && known.token) {
                continue;
            }
            let Some(people) = known.people.filter(|people| people.has_column(name)) else {
                let columns = known.people.iter().flat_map(|people| people.columns());
                let names = ["user", "device"].into_iter().chain(known.token.then_some("token")).chain(columns);
                let names: Vec<String> = names.map(|name| format!("{{{name}}}")).collect();
                let message = format!(
                    "has {{{name}}}, which nothing fills; known are {} and further columns of population.users_file",
                    names.join(", ")
                );
                self.report(path, message);
                continue;
            };
            if known.has_platform && !people.has_platform() {
                let message = format!(
                    "has {{{name}}}, but population.users_file has no row for '{PLATFORM}', which sends the system messages"
                );
                self.report(path, message);
            }
        }
    }

    fn place(&mut self, file: &TargetFile) -> Place {
        let mut faults = Vec::new();
        for (i, text) in file.faults.iter().enumerate() {
            match text.parse() {
                Ok(fault) => faults.push(fault),
                Err(error) => self.report(&format!("target.faults[{i}]"), error),
            }
        }
        if file.url == "embedded" {
            return Place::Embedded { faults };
        }
        if !file.faults.is_empty() {
            self.report("target.faults", "only works with url = \"embedded\"; start mock-server with --fault instead");
        }
        let wrong = match file.url.parse::<Uri>() {
            _ if file.url.is_empty() => Some("is missing".to_owned()),
            Err(error) => Some(format!("'{}' is no address ({error})", file.url)),
            Ok(uri) if !matches!(uri.scheme_str(), Some("ws" | "wss")) || uri.host().is_none_or(str::is_empty) => {
                Some(format!("'{}' is no WebSocket address", file.url))
            }
            Ok(_) => None,
        };
        if let Some(wrong) = wrong {
            self.report("target.url", format!("{wrong}; write \"ws://host:port/path\", \"wss://…\" or \"embedded\""));
        }
        Place::Url(file.url.clone())
    }
}
