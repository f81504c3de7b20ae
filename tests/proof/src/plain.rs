//! Time, text and windows.

use core::fmt::Write as _;
use core::hint::black_box;
use core::time::Duration;

use fettle_core::bounds::{
    BOOT_ID_MAX, CLEARED_BY_MAX, EVENT_WRITES_MAX, KUBELET_DIR_MAX, LINE_MAX, MESSAGE_MAX,
    NOTE_MAX, OBJECT_MAX, SUBJECT_MAX, UNIT_NAME_MAX,
};
use fettle_core::node::fold::Extra;
use fettle_core::text::Text;
use fettle_core::time::{Instant, Timestamp};
use fettle_core::window::Window;

use crate::{bytes, instant, number, show, text};

/// Calls everything in `time`, `text` and `window`.
pub(crate) fn call_all() {
    times();
    texts();
    windows();
}

fn times() {
    let span = black_box(Duration::from_millis(7));
    let later: Instant = instant() + span;
    black_box((later.since(instant()), later.millis(), later.micros()));
    let wall = Timestamp::from_unix_secs(black_box(-7)) + span;
    let earlier = Timestamp::from_unix_secs(black_box(7));
    black_box(wall).rfc3339().into_iter().for_each(show);
    black_box((wall.since(earlier), wall.unix_secs(), wall.cmp(&earlier)));
    black_box(wall.rfc3339().map(Text::<LINE_MAX>::display));
}

fn texts() {
    text_of::<BOOT_ID_MAX>();
    text_of::<CLEARED_BY_MAX>();
    text_of::<KUBELET_DIR_MAX>();
    text_of::<LINE_MAX>();
    text_of::<MESSAGE_MAX>();
    text_of::<NOTE_MAX>();
    text_of::<OBJECT_MAX>();
    text_of::<SUBJECT_MAX>();
    text_of::<UNIT_NAME_MAX>();
    black_box(Extra::from_bytes(bytes()));
}

fn text_of<const N: usize>() {
    let mut made = Text::<N>::from_bytes(bytes());
    black_box(&mut made).push_bytes(bytes());
    black_box(&mut made).push_str(text());
    let _ = write!(black_box(&mut made), "{} {}", number(), text());
    black_box((made.as_str(), made.is_empty(), made == Text::new(), made.clone()));
    black_box(made.cmp(&Text::display(number())));
    show(&made);
}

fn windows() {
    let mut window = Window::<EVENT_WRITES_MAX>::new();
    black_box(&mut window).note(instant());
    let window = black_box(&window);
    let span = black_box(Duration::from_secs(7));
    black_box((window.count(instant(), span), window.room_at(instant(), span)));
    black_box((window.clone(), *window == Window::new()));
}
