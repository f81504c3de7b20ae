//! The name that was probably meant.

/// Returns a question that names the nearest of `names`, or nothing if none is near.
pub(super) fn did_you_mean<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> String {
    let word: Vec<char> = word.chars().take(LENGTH_MAX).flat_map(char::to_lowercase).collect();
    let far = (word.len() / 3).max(1);
    names
        .map(|name| (distance(&word, name), name))
        .filter(|(distance, _)| *distance <= far)
        .min()
        .map(|(_, name)| format!(" (did you mean {name}?)"))
        .unwrap_or_default()
}

/// Returns how many characters differ, are missing or too many (Levenshtein).
fn distance(word: &[char], name: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (line, right) in name.chars().flat_map(char::to_lowercase).enumerate() {
        let mut corner = line;
        let mut before = line + 1;
        for (left, cell) in word.iter().zip(row.iter_mut().skip(1)) {
            let replaced = corner + usize::from(*left != right);
            corner = *cell;
            before = replaced.min(corner + 1).min(before + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Most characters of a word that are compared: no name is longer.
const LENGTH_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_near_and_another_word_is_not() {
        let names = ["proxy", "tunnel", "lvm"];
        for (word, want) in [
            ("proxi", " (did you mean proxy?)"),
            ("Proxy", " (did you mean proxy?)"),
            ("tnnl", ""),
            ("tunel", " (did you mean tunnel?)"),
            ("lv", " (did you mean lvm?)"),
            ("zfs", ""),
            ("", ""),
        ] {
            assert_eq!(did_you_mean(word, names.into_iter()), want, "{word}");
        }
        for (left, right, want) in [("", "ab", 2), ("ab", "", 2), ("kitten", "sitting", 3)] {
            assert_eq!(distance(&left.chars().collect::<Vec<_>>(), right), want);
        }
    }
}
