//! Reads npy arrays as f64 matrices.

use std::io::{BufReader, ErrorKind, Read};

use ndarray::{Array2, ShapeBuilder};
use npyz::{DType, Deserialize, NpyFile, NpyHeader, Order, TypeChar};

use super::io_problem;

pub(super) fn read(file: impl Read) -> Result<Array2<f64>, String> {
    let mut source = BufReader::new(file);
    let header = NpyHeader::from_reader(&mut source).map_err(|e| bad_header(&e))?;
    matrix(header, source).map_err(|problem| format!("the array {problem}"))
}

pub(super) fn bad_header(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "truncated in its header".to_owned(),
        ErrorKind::InvalidData => format!("not a readable npy file ({error})"),
        _ => io_problem(error),
    }
}

pub(super) fn matrix(header: NpyHeader, mut source: impl Read) -> Result<Array2<f64>, String> {
    use TypeChar::{Bool, Float, Int, Uint};
    let kind = match header.dtype() {
        DType::Plain(plain) => Some((plain.type_char(), plain.size_field())),
        _ => None,
    };
    match kind {
        Some((Float, 4)) => converted(header, &mut source, |v: f32| f64::from(v)),
        Some((Float, 8)) => converted(header, &mut source, |v: f64| v),
        Some((Int, 1)) => converted(header, &mut source, |v: i8| f64::from(v)),
        Some((Int, 2)) => converted(header, &mut source, |v: i16| f64::from(v)),
        Some((Int, 4)) => converted(header, &mut source, |v: i32| f64::from(v)),
        Some((Int, 8)) => converted(header, &mut source, |v: i64| v as f64),
        Some((Uint, 1)) => converted(header, &mut source, |v: u8| f64::from(v)),
        Some((Uint, 2)) => converted(header, &mut source, |v: u16| f64::from(v)),
        Some((Uint, 4)) => converted(header, &mut source, |v: u32| f64::from(v)),
        Some((Uint, 8)) => converted(header, &mut source, |v: u64| v as f64),
        Some((Bool, _)) => converted(header, &mut source, |v: bool| f64::from(v)),
        other => Err(format!(
            "has dtype {}{}; float32, float64, integers and bool are supported",
            header.dtype().descr(),
            described(other.map(|(kind, _)| kind))
        )),
    }
}

fn described(kind: Option<TypeChar>) -> &'static str {
    match kind {
        None => " (structured)",
        Some(TypeChar::Object) => " (Python objects)",
        Some(TypeChar::ByteStr | TypeChar::UnicodeStr) => " (text)",
        Some(TypeChar::Complex) => " (complex)",
        Some(TypeChar::DateTime | TypeChar::TimeDelta) => " (time)",
        Some(_) => "",
    }
}

fn converted<T: Deserialize>(
    header: NpyHeader,
    source: &mut impl Read,
    convert: impl Fn(T) -> f64,
) -> Result<Array2<f64>, String> {
    let (rows, columns) = dimensions(header.shape())?;
    let too_large = || format!("has shape {}, too large to read", python(header.shape()));
    let count = rows.checked_mul(columns).ok_or_else(too_large)?;
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| too_large())?;
    let order = header.order();

    let items = NpyFile::with_header(header, &mut *source)
        .data::<T>()
        .map_err(|error| format!("cannot be read: {error}"))?;
    for item in items {
        match item {
            Ok(value) => values.push(convert(value)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                let held = values.len();
                return Err(format!("is truncated: {held} of {count} values are there"));
            }
            Err(error) => return Err(format!("is damaged: {error}")),
        }
    }
    // A zip entry checks its checksum only when it is read up to its end.
    std::io::copy(source, &mut std::io::sink()).map_err(|error| format!("is damaged: {error}"))?;

    let shape = (rows, columns).set_f(order == Order::Fortran);
    let values = Array2::from_shape_vec(shape, values).map_err(|e| e.to_string())?;
    Ok(match order {
        Order::C => values,
        Order::Fortran => values.as_standard_layout().into_owned(),
    })
}

fn dimensions(shape: &[u64]) -> Result<(usize, usize), String> {
    let text = python(shape);
    match *shape {
        [0, _] => Err(format!("has no rows: its shape is {text}")),
        [_, 0] => Err(format!("has no columns: its shape is {text}")),
        [rows, columns] => match (usize::try_from(rows), usize::try_from(columns)) {
            (Ok(rows), Ok(columns)) => Ok((rows, columns)),
            _ => Err(format!("has shape {text}, too large to read")),
        },
        [n] => Err(format!(
            "has shape {text}, two dimensions expected; a single feature must be a column: shape ({n}, 1)"
        )),
        _ => Err(format!("has shape {text}, two dimensions expected")),
    }
}

/// Writes a shape the way numpy does.
fn python(shape: &[u64]) -> String {
    match shape {
        [n] => format!("({n},)"),
        _ => {
            let sizes: Vec<_> = shape.iter().map(u64::to_string).collect();
            format!("({})", sizes.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    const F8: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN];

    fn file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header =
            format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
    }

    fn doubles(shape: &str) -> Vec<u8> {
        file("'<f8'", "False", shape, F8.map(f64::to_le_bytes).as_flattened())
    }

    macro_rules! reads_both_byte_orders {
        ($type:ty, $code:literal) => {
            let values = [<$type>::MIN, 1 as $type, 2 as $type, <$type>::MAX];
            let little = file(
                concat!("'<", $code, "'"),
                "False",
                "(2, 2)",
                values.map(<$type>::to_le_bytes).as_flattened(),
            );
            let big = file(
                concat!("'>", $code, "'"),
                "False",
                "(2, 2)",
                values.map(<$type>::to_be_bytes).as_flattened(),
            );
            let expected = array![[<$type>::MIN as f64, 1.0], [2.0, <$type>::MAX as f64]];
            assert_eq!(read(&little[..]).unwrap(), expected, $code);
            assert_eq!(read(&big[..]).unwrap(), expected, $code);
        };
    }

    #[test]
    fn every_number_type_reads_in_both_byte_orders() {
        reads_both_byte_orders!(f32, "f4");
        reads_both_byte_orders!(f64, "f8");
        reads_both_byte_orders!(i8, "i1");
        reads_both_byte_orders!(i16, "i2");
        reads_both_byte_orders!(i32, "i4");
        reads_both_byte_orders!(i64, "i8");
        reads_both_byte_orders!(u8, "u1");
        reads_both_byte_orders!(u16, "u2");
        reads_both_byte_orders!(u32, "u4");
        reads_both_byte_orders!(u64, "u8");
    }

    #[test]
    fn bool_reads_as_zero_and_one() {
        let bytes = file("'|b1'", "False", "(2, 1)", &[1, 0]);
        assert_eq!(read(&bytes[..]).unwrap(), array![[1.0], [0.0]]);
    }

    #[test]
    fn fortran_order_reads_by_columns_into_standard_layout() {
        let data: Vec<u8> = (1..=6).collect();
        let by_rows = read(&file("'|u1'", "False", "(2, 3)", &data)[..]).unwrap();
        let by_columns = read(&file("'|u1'", "True", "(2, 3)", &data)[..]).unwrap();
        assert_eq!(by_rows, array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        assert_eq!(by_columns, array![[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]);
        assert!(by_columns.is_standard_layout());
    }

    #[test]
    fn nan_stays_nan() {
        assert!(read(&doubles("(2, 3)")[..]).unwrap()[[1, 2]].is_nan());
    }

    #[test]
    fn other_dtypes_are_named() {
        for (descr, named) in [
            ("'|O'", "'|O' (Python objects);"),
            ("'<U3'", "'<U3' (text);"),
            ("'|S3'", "'|S3' (text);"),
            ("'<c16'", "'<c16' (complex);"),
            ("'<M8[ns]'", "'<M8[ns]' (time);"),
            ("'<f2'", "'<f2';"),
            ("[('a', '<f8')]", "[('a', '<f8'), ] (structured);"),
        ] {
            let error = read(&file(descr, "False", "(1, 1)", &[0; 16])[..]).unwrap_err();
            assert!(error.starts_with(&format!("the array has dtype {named}")), "{error}");
        }
    }

    #[test]
    fn shapes_that_are_no_matrix_are_named() {
        for (shape, problem) in [
            ("()", "has shape (), two dimensions expected"),
            (
                "(6,)",
                "has shape (6,), two dimensions expected; a single feature must be a column: shape (6, 1)",
            ),
            ("(1, 2, 3)", "has shape (1, 2, 3), two dimensions expected"),
            ("(0, 3)", "has no rows: its shape is (0, 3)"),
            ("(3, 0)", "has no columns: its shape is (3, 0)"),
            ("(4294967296, 4294967295)", "has shape (4294967296, 4294967295), too large to read"),
        ] {
            let error = read(&doubles(shape)[..]).unwrap_err();
            assert_eq!(error, format!("the array {problem}"));
        }
    }

    #[test]
    fn truncated_files_are_refused() {
        let bytes = doubles("(2, 3)");
        let cut = |end: usize| read(&bytes[..end]).unwrap_err();
        assert_eq!(cut(bytes.len() - 1), "the array is truncated: 5 of 6 values are there");
        assert_eq!(cut(30), "truncated in its header");
    }

    #[test]
    fn bytes_that_are_no_bool_are_refused() {
        let error = read(&file("'|b1'", "False", "(2, 1)", &[1, 2])[..]).unwrap_err();
        assert!(error.starts_with("the array is damaged"), "{error}");
    }

    #[test]
    fn foreign_content_is_refused() {
        for bytes in [&b""[..], b"1,2,3\n4,5,6\n"] {
            assert!(read(bytes).unwrap_err().starts_with("not a readable npy file"));
        }
    }
}
