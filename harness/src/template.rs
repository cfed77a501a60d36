//! Texts with places to fill in, such as `Bearer {token}`. Knows no names of its own.

/// Fills every placeholder that `value` knows; the others stay as they are. What is filled in is not looked at again.
pub fn fill<'v>(template: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, name, after)) = next(rest) {
        filled.push_str(before);
        match value(name) {
            Some(value) => filled.push_str(value),
            None => filled.push_str(&rest[before.len()..rest.len() - after.len()]),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// The names of all placeholders, in their order.
pub fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    let mut rest = template;
    std::iter::from_fn(move || {
        let (_, name, after) = next(rest)?;
        rest = after;
        Some(name)
    })
}

/// What stands before the next placeholder, its name, and what stands behind it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let open = from + text[from..].find('{')?;
        let inside = &text[open + 1..];
        match inside.find(['{', '}']) {
            Some(end) if inside[end..].starts_with('}') && is_name(&inside[..end]) => {
                return Some((&text[..open], &inside[..end], &inside[end + 1..]));
            }
            _ => from = open + 1,
        }
    }
}

/// Anything else in braces is left alone: a header may hold JSON.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || "_-. ".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str) -> String {
        fill(template, |name| match name {
            "user" => Some("{device}"),
            "device" => Some("3"),
            _ => None,
        })
    }

    #[test]
    fn known_names_are_filled_once_and_everything_else_stays() {
        for (template, expected) in [
            ("{user}.{device}", "{device}.3"),
            ("{other} {device}", "{other} 3"),
            ("{{device}}", "{3}"),
            ("{\"a\":1,\"b\":\"{device}\"}", "{\"a\":1,\"b\":\"3\"}"),
            ("{device", "{device"),
            ("{} é{device}é }{", "{} é3é }{"),
            ("", ""),
        ] {
            assert_eq!(filled(template), expected, "{template}");
        }
    }

    #[test]
    fn placeholders_are_told_from_other_braces() {
        let names: Vec<&str> = placeholders("{user} {\"a\":{b-c}} {1} {} {e mail}{").collect();
        assert_eq!(names, ["user", "b-c", "e mail"]);
    }
}
