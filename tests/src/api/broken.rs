//! Bodies that pass through a front, and end as a fault says.

use core::pin::Pin;

use futures_util::{Stream, StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client;
use serde_json::json;
use tokio::sync::watch;

use super::faults::End;
use super::listen::{Body, Dropped};

type Part = Result<Bytes, Box<dyn core::error::Error + Send + Sync>>;

/// A body under way.
struct Passing {
    from: Pin<Box<dyn Stream<Item = Part> + Send>>,
    /// Lines that still pass, and how it goes on; none passes all.
    breaks: Option<(u32, End)>,
    /// Whether this part is the last.
    ends: bool,
    frozen: watch::Receiver<bool>,
}

/// Passes `body` on, broken as `breaks` says, and held back while `frozen` says so.
pub(super) fn body(
    body: client::Body,
    breaks: Option<(u32, End)>,
    frozen: watch::Receiver<bool>,
) -> Body {
    let from = body.into_data_stream().map(|part| part.map_err(Into::into)).boxed();
    let passing = Passing { from, breaks, ends: false, frozen };
    let parts = stream::unfold(passing, async |mut passing| {
        let part = passing.next().await?;
        // A front that is gone freezes nothing.
        let _ = passing.frozen.wait_for(|frozen| !frozen).await;
        Some((part.map(Frame::data), passing))
    });
    StreamBody::new(parts).boxed_unsync()
}

impl Passing {
    async fn next(&mut self) -> Option<Part> {
        if self.ends {
            return None;
        }
        if let Some((0, end)) = self.breaks {
            self.breaks = None;
            return self.finish(end).await;
        }
        let part = match self.from.next().await? {
            Ok(part) => part,
            Err(error) => return Some(Err(error)),
        };
        let Some((lines, end)) = &mut self.breaks else { return Some(Ok(part)) };
        let mut passed = 0;
        for line in part.split_inclusive(|&byte| byte == b'\n') {
            if *lines == 0 {
                break;
            }
            passed += line.len();
            *lines -= u32::from(line.ends_with(b"\n"));
        }
        if *lines == 0 && *end == End::Garbage && passed < part.len() {
            // What is left of this part comes after the garbage.
            let rest = stream::iter([Ok(part.slice(passed..))]);
            let from = core::mem::replace(&mut self.from, stream::empty().boxed());
            self.from = rest.chain(from).boxed();
        }
        Some(Ok(part.slice(..passed)))
    }

    /// Returns the part that comes after the last whole line.
    async fn finish(&mut self, end: End) -> Option<Part> {
        self.ends = end != End::Garbage;
        match end {
            End::Close => None,
            End::Cut => Some(Err(Box::new(Dropped))),
            End::Expired => {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "too old resource version", "reason": "Expired", "code": 410,
                });
                let event = json!({"type": "ERROR", "object": status});
                Some(Ok(Bytes::from(format!("{event}\n"))))
            }
            End::Garbage => Some(Ok(Bytes::from_static(b"{\"type\":\"MODIFIED\",}\n"))),
            End::HalfLine => Some(Ok(Bytes::from_static(b"{\"type\":\"MODIFIED\",\"object\":{"))),
            End::Stall => core::future::pending().await,
        }
    }
}
