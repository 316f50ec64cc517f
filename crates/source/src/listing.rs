//! Answers to the question what is in a bucket, before the library reads them. An answer enters; it leaves as
//! it came, or as an error: the library takes any document for a listing, of whatever size, and the lack of a
//! token for its end, whatever else the store says of that.

use bytes::Bytes;
use futures_util::StreamExt;
use howdah_model::{Error, ErrorKind, Result};
use object_store::client::{HttpError, HttpErrorKind, HttpRequest, HttpResponse};

/// A page has 1,000 keys, each of 1,024 bytes at most, which take some more in XML; some stores make longer
/// pages.
const PAGE_BYTES_MAX: usize = 64 << 20;

/// With which the names of the elements begin that hold a listing: those of S3 and Google, whom some follow
/// with a V2 in them, and of Azure.
const ROOTS: [&str; 2] = ["ListBucket", "EnumerationResults"];

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All pages, one by one.
    Pages,
    /// The first few keys, and whether there are others matters to nobody.
    Few,
}

/// `None` where it is no listing.
pub(crate) fn asked(request: &HttpRequest) -> Option<Asked> {
    let has = |wanted: &[&str]| {
        let query = request.uri().query().unwrap_or_default();
        query.split('&').any(|pair| wanted.iter().any(|wanted| pair.starts_with(wanted)))
    };
    let is_listing = request.method() == "GET" && has(&["list-type=2", "comp=list"]);
    is_listing.then(|| if has(&["max-keys=", "maxresults="]) { Asked::Few } else { Asked::Pages })
}

/// The whole page, of which it is certain whether others follow if that was asked.
pub(crate) async fn checked(answer: HttpResponse, asked: Asked) -> Result<HttpResponse, HttpError> {
    let refused = |error: Error| HttpError::new(HttpErrorKind::Unknown, error);
    let (parts, body) = answer.into_parts();
    let mut page = Vec::new();
    let mut blocks = body.bytes_stream();
    while let Some(block) = blocks.next().await {
        page.extend_from_slice(&block?);
        if page.len() > PAGE_BYTES_MAX {
            let message = format!("the store's listing is no page: it has more than {PAGE_BYTES_MAX} bytes");
            return Err(refused(Error::new(ErrorKind::SourceIo, message)));
        }
    }
    check(&String::from_utf8_lossy(&page), asked).map_err(refused)?;
    Ok(HttpResponse::from_parts(parts, Bytes::from(page).into()))
}

fn check(page: &str, asked: Asked) -> Result<()> {
    let is_there = |name: &str| page.contains(&format!("<{name}")) && page.contains(&format!("</{name}"));
    if !ROOTS.iter().any(|name| is_there(name)) {
        return Err(Error::new(ErrorKind::SourceIo, "the answer is no listing of a store").with_hint(
            "check the endpoint; a proxy or a portal may have answered in the place of the store",
        ));
    }
    let breaks_off =
        element(page, "IsTruncated") == Some("true") && element(page, "NextContinuationToken").is_none();
    match breaks_off && asked == Asked::Pages {
        false => Ok(()),
        true => Err(Error::new(
            ErrorKind::SourceIo,
            "the store says that there are more objects, and not how to ask for them: it may not know ListObjectsV2",
        )
        .with_hint("name its objects one by one, or give prefixes of fewer objects")),
    }
}

/// What stands in the first of these elements, if that is something. Keys hold no `<` there.
fn element<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let (text, _) = page.split_once(&format!("<{name}>"))?.1.split_once("</")?;
    Some(text.trim()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_whether_it_is_the_last() {
        for (content, is_good) in [
            ("", true),
            ("<IsTruncated>false</IsTruncated>", true),
            ("<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>", true),
            ("<IsTruncated> true </IsTruncated>", false),
            ("<IsTruncated>true</IsTruncated><NextContinuationToken></NextContinuationToken>", false),
            ("<IsTruncated>true</IsTruncated><NextContinuationToken/>", false),
            // As ListObjects, the version before, goes on.
            ("<IsTruncated>true</IsTruncated><NextMarker>k</NextMarker>", false),
            // A key that looks like an element.
            ("<Contents><Key>&lt;IsTruncated&gt;true&lt;/IsTruncated&gt;</Key></Contents>", true),
        ] {
            let page =
                format!("<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\">{content}</ListBucketResult>");
            assert_eq!(check(&page, Asked::Pages).is_ok(), is_good, "{content}");
            check(&page, Asked::Few).unwrap();
        }
    }

    #[test]
    fn another_document_is_no_listing() {
        for page in
            ["", "<html>log in</html>", "<Error><Code>Busy</Code></Error>", "<ListBucketResult><Contents>"]
        {
            assert_eq!(check(page, Asked::Few).unwrap_err().kind(), ErrorKind::SourceIo, "{page}");
        }
        check("<ListBucketV2Result><KeyCount>0</KeyCount></ListBucketV2Result>", Asked::Pages).unwrap();
        check("<EnumerationResults ServiceEndpoint=\"x\"><NextMarker/></EnumerationResults>", Asked::Pages)
            .unwrap();
    }
}
