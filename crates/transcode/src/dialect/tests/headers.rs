//! First records that are names, and those that are not.

use super::*;

#[test]
fn a_record_with_words_for_some_values_is_no_header() {
    let body = "2,2024-01-02,5\n3,2024-01-03,6\n4,2024-01-04,7\n5,2024-01-05,8\n6,tbd,9\n";
    for first in ["1,0000-00-00,tbd\n", "x,tbd,unknown\n", "1,unknown,tbd\n"] {
        let found = text(&format!("{first}{body}"));
        assert_eq!((found.header_rows, found.plain.start_byte), (0, 0), "{first}");
        let found = text(&format!("id,day,n\n{first}{body}"));
        assert_eq!((found.header_rows, found.plain.start_byte), (1, 9), "{first}");
    }
    let years = "ann,1990,1991\nbob,1985,1986\ncid,1970,1975\n";
    assert_eq!(text(years).header_rows, 0);
    let years = text("name,a,b\nann,2019,2020\nbob,1.5,7\ncid,2.5,8\ndan,3.5,9\n");
    assert_eq!(years.header_rows, 1, "{}", years.describe());
    // A header may come again.
    let again = text("day,n\n2024-01-02,5\n2024-01-03,6\n2024-01-04,6\nday,n\n2024-01-05,7\n2024-01-06,9\n");
    assert_eq!(again.header_rows, 1);
}

#[test]
fn further_header_records_are_told() {
    let body = "1,ann,2020-01-01\n2,bob,2020-01-02\n3,cid,2020-01-03\n";
    let told = |header: &str| {
        let found = text(&format!("{header}{body}"));
        found.unsure.iter().any(|unsure| unsure.option == HEADER_RECORDS_OPTION) && !found.is_header_unsure()
    };
    assert!(told("key,person,date of\nno,name,birth\n") && !told("id,name,born\n") && !told(""));
}

#[test]
fn a_first_record_with_a_word_for_its_number_is_no_second_header() {
    let found =
        text("region,amount,city\nnorth,unknown,Rome\neast,2.5,Oslo\nwest,3.5,Bern\nsouth,4.5,Wien\n");
    assert_eq!(found.header_rows, 1, "{}", found.describe());
    let found =
        text("region,amount,year,city\nname,EUR,number,place\nn,2.5,1,Oslo\nw,3.5,2,Bern\ns,4.5,3,Wien\n");
    assert_eq!(found.header_rows, 2, "{}", found.describe());
}

#[test]
fn a_header_one_name_short_is_told() {
    let rows = "\"Mazda RX4\",21,6,160\n\"Datsun 710\",22.8,4,108\n\"Valiant\",18.1,6,225\n";
    let is_told = |found: &Finding| found.unsure.iter().any(|unsure| unsure.option == "--columns");
    let found = text(&format!("\"mpg\",\"cyl\",\"disp\"\n{rows}"));
    assert_eq!(found.names, ["", "mpg", "cyl", "disp"]);
    assert!(is_told(&found) && !found.lacks_names);
    let found = text("id,name,age\n7,ann,31,rome\n7,bob,29,oslo\n8,cid,41,wien\n");
    assert_eq!((found.names.len(), found.names[3].as_str()), (4, ""));
    assert!(is_told(&found) && found.lacks_names);
    // Fields behind the last name that hold nothing need none.
    let found = text("id,name\n7,ann,\n7,bob,\n8,cid,\n");
    assert!(!is_told(&found) && !found.lacks_names);
    let found = text("\"mpg\",\"cyl\"\n\"1\",21,6\n\"2\",22.8,4\n\"3\",18.1,6\n");
    assert!(!is_told(&found) && found.names == ["", "mpg", "cyl"]);
    // Numbers have a name of their own where all records end with a delimiter too many.
    let found = text("no;tree\n1;ash;\n2;lime;\n3;oak;\n");
    assert!(!is_told(&found) && found.names == ["no", "tree", ""], "{:?}", found.names);
}

#[test]
fn a_line_drawn_below_the_names_does_not_hide_that_they_are_too_few() {
    let found = text("id name value\n-- ---- -----\n1 ann 31 2.5\n2 bob 29 3.5\n3 cid 41 4.5\n");
    assert!(found.lacks_names && found.header_rows == 1, "{}", found.describe());
}

#[test]
fn values_with_a_mark_are_no_names() {
    let rows = "Bern,0.7\nChur,12\nSion,0.9\nGenf,1.5\n";
    for value in ["<0.5", ">100", "~3", "n/a", "-", "#N/A", "1.2*"] {
        let found = text(&format!("Oslo,{value}\n{rows}"));
        assert_eq!(found.header_rows, 0, "{value}: {}", found.describe());
    }
    for names in ["city,<0.5", "Ort,Menge (t)", "Stadt,Na", "Stadt,x*"] {
        let found = text(&format!("{names}\n{rows}"));
        assert_eq!(found.header_rows, 1, "{names}: {}", found.describe());
    }
}

#[test]
fn a_last_record_called_total_is_data_where_it_is_no_sum() {
    let end = |text_of: &str| text(text_of).plain.end_byte;
    assert_eq!(end("station,pumps\nShell,3\nBP,4\nTotal,6\n"), None);
    assert_eq!(end("station,pumps\nShell,3\nBP,4\nTotal,7\n"), Some(27));
    assert_eq!(end("station;price;pumps\nShell;1.759,50;3\nBP;2,25;4\nTotal;1.761,75;99\n"), Some(47));
    assert_eq!(end("station,pumps\nShell,3\nBP,4\n\nTotal,6\n"), Some(27));
    assert_eq!(end("station,pumps,x\nShell,3,1\nBP,4,1\nTotal,,6\n"), Some(33));
    assert_eq!(end("station;price\nShell;12EUR\nBP;30EUR\nTotal;17EUR\n"), None);
    assert_eq!(end("station;price\nShell;12EUR\nBP;30EUR\nTotal;42EUR\n"), Some(35));
    // What was rounded to two or three digits may come to 1.75E+03, and to no more than 1.85E+03.
    let rows = "probe;bq\nnorth;1.5E+03\nsouth;2.5E+02\nwest;4.0E+01\n";
    for (value, is_total) in
        [("1.79E+03", true), ("1.75E3", true), ("-1.79E+03", false), ("6.0E+02", true), ("7.1E+02", false)]
    {
        let found = end(&format!("{rows}Total;{value}\n"));
        assert_eq!(found, is_total.then_some(rows.len() as u64), "{value}");
    }
}

#[test]
fn blanks_of_one_column_alone_are_part_of_its_values() {
    for rows in ["code1 ,5\n", "5,code1 \n", "code1 ,5,6\n", "1, x,y\n"] {
        let other = rows.replace(' ', "").replace("code1", "code2");
        let found = text(&format!("{rows}{other}").repeat(20));
        assert!(!found.dialect.trim, "{rows}: {}", found.describe());
    }
    for rows in ["code1 , 5\n", "code1   , 12,x \n", "a1 ,b1 ,c\n"] {
        let found = text(&rows.repeat(20));
        assert!(found.dialect.trim, "{rows}: {}", found.describe());
    }
}

#[test]
fn comments_may_declare_the_names() {
    let log = |fields: &str, more: &str| {
        format!(
            "#Version: 1.0\n#Fields: {fields}\n2024-03-01 GET 200\n2024-03-02 GET 304\n2024-03-03 POST 404\n{more}"
        )
    };
    let found = text(&log("date cs-method sc-status", ""));
    assert_eq!((found.header_rows, found.names.join("|").as_str()), (1, "date|cs-method|sc-status"));
    assert_eq!(found.plain.start_byte, 48);
    let found = text(&log("date method", ""));
    assert_eq!((found.header_rows, found.names.len()), (0, 0));
    let found = text(&log("date m s", "#Fields: date m s\n2024-03-04 GET 200\n"));
    assert_eq!((found.header_rows, found.dialect.comment.as_deref()), (1, Some("#")));
    let zeek = "#path\tx\n#fields\tts\tid\n#types\ttime\tstring\n1.5\ta\n2.5\tb\n3.5\tc\n";
    let found = text(zeek);
    assert_eq!((found.header_rows, found.names.join("|").as_str()), (2, "ts|id"));
}

#[test]
fn a_delimiter_that_may_be_a_decimal_comma_moves_no_name() {
    let cuts = |file: &str| text(file).cuts_decimals;
    assert!(cuts("id,val,name\n1,2,5,foo\n2,3,5,bar\n3,4,75,baz\n"));
    assert!(cuts("id,val,name\na,2,5,foo\nb,3,5,bar\nc,4,75,baz\n"));
    assert!(!cuts("mpg,cyl,hp\n1,21.5,6,110\n2,22.8,4,93\n3,21.4,6,110\n"));
    assert!(!cuts("mpg,cyl,hp\n\"1\",21,6,110\n\"2\",22,4,93\n\"3\",21,6,110\n"));
    // Fractions of one column have as many digits, or no zeros at the end.
    assert!(!cuts("mpg,cyl,hp\n1,21,160,110\n2,8,40,93\n3,20,160,110\n"));
    assert!(!cuts("year,hp\nMazda,2020,110\nDatsun,2021,93\nHornet,2022,95\n"));
    assert!(cuts("id,val,name\n1,2,50,foo\n2,3,25,bar\n3,4,75,baz\n"));
    assert!(!cuts("mpg;cyl;hp\n1;21;6;110\n2;22;4;93\n3;21;6;110\n"));
}

#[test]
fn underlined_names_and_edges_are_no_records() {
    let drawn = "+----+-------+-----+\n| id | name  | n   |\n+----+-------+-----+\n|  1 | ann   | 2.5 |\n|  2 | bob   | 3.5 |\n|  3 | cy    | 4.5 |\n";
    for end in ["", "3 rows in set (0.00 sec)\n\n", "(3 rows)\n"] {
        let found = text(&format!("{drawn}+----+-------+-----+\n{end}"));
        assert_eq!((found.width, found.header_rows, found.plain.end_byte), (5, 1, Some(126)), "{end}");
    }
    let underlined = text("id,name,val\n--,----,---\n1,ann,2.5\n2,bob,NULL\n3,cy,4\n");
    assert_eq!((underlined.plain.start_byte, underlined.dialect.nulls.join("|").as_str()), (24, "NULL"));
}

#[test]
fn a_name_that_comes_again_as_a_value_is_one_among_sure_names() {
    for table in [
        // As R writes it.
        "\"\",\"y\",\"n\",\"A\"\n\"1\",17,24,\"A\"\n\"2\",29,29,\"I\"\n\"3\",17,27,\"A\"\n\"4\",20,20,\"I\"\n",
        "no,hours,kids,married\n1,2940,2,married\n2,2040,2,divorced\n3,693,1,married\n4,1904,2,single\n",
    ] {
        assert_eq!(text(table).header_rows, 1, "{table}");
    }
    for table in [
        "\"x\",\"y\",\"A\"\n\"1\",\"2\",\"A\"\n\"2\",\"3\",\"I\"\n\"3\",\"4\",\"A\"\n\"4\",\"5\",\"I\"\n",
        "tbd,x,single\n2040,2,divorced\n693,1,married\n1904,2,single\n1904,2,single\n",
    ] {
        let found = text(table);
        assert_eq!(found.header_rows, 0, "{table}");
        assert!(found.is_header_unsure(), "{table}");
    }
}

/// Two words above columns that hold nothing but numbers are names, whatever comes again beside them; above a
/// column with a word among its numbers they may be a record.
#[test]
fn two_names_above_numbers_alone_outweigh_one_that_comes_again() {
    let body = |odd: &str| -> String {
        let value = |no: u32| if no == 7 { odd.to_owned() } else { format!("0.{no:03}") };
        let word = |no: u32| ["new-york", "x", "alpha"][no as usize % 3];
        (1..13).map(|no| format!("{no},{},{}\n", value(no), word(no))).collect()
    };
    for (odd, header_rows) in [("", 1), ("0.5", 1), ("n/a?", 0)] {
        let found = text(&format!("is_active,order,x\n{}", body(odd)));
        assert_eq!(found.header_rows, header_rows, "{odd}: {}", found.describe());
        assert_eq!(found.is_header_unsure(), header_rows == 0, "{odd}");
    }
}

#[test]
fn a_word_above_a_column_of_nothing_leaves_a_first_record_open() {
    let rows: String = ["semi", "york", "north", "x", "beta"]
        .repeat(3)
        .iter()
        .map(|word| format!("{word}-1,,{word}\n"))
        .collect();
    for (first, is_unsure) in [("table,2nd,x\n", true), ("table,,x\n", false)] {
        let found = text(&format!("{first}{rows}"));
        assert_eq!(
            (found.header_rows, found.is_header_unsure()),
            (0, is_unsure),
            "{first}: {}",
            found.describe()
        );
    }
}

#[test]
fn a_first_record_with_words_for_numbers_that_is_none_of_names_is_told() {
    let found = text(
        "150,4,setosa,versicolor,virginica\n5.1,3.5,1.4,0.2,0\n4.9,3.0,1.4,0.2,0\n4.7,3.2,1.3,0.2,1\n4.6,3.1,1.5,0.2,1\n",
    );
    assert!(found.header_rows == 0 && found.is_header_unsure());
    let found = text("1,2,x\n3,4,y\n5,6,z\n7,8,u\n");
    assert!(found.header_rows == 0 && !found.is_header_unsure());
}

#[test]
fn records_of_blanks_below_the_header_are_told() {
    let told = |empty: &str| {
        let found = text(&format!("rr,cusum\n{empty}1.5,2.5\n2.5,3.5\n3.5,4.5\n"));
        found.unsure.into_iter().map(|unsure| unsure.what).collect::<Vec<_>>()
    };
    assert_eq!(told(" , \n , \n"), ["2 records of empty fields before the others are taken for none"]);
    assert!([",\n,\n", "", "\n"].iter().all(|empty| told(empty).is_empty()));
}

#[test]
fn one_word_above_records_may_name_one_column() {
    let is_told = |name: &str, values: &[&str]| {
        let found = text(&format!("{name}{}\n", values.repeat(20).join("\n")));
        found.width == 1 || found.unsure.iter().any(|unsure| unsure.option == "--delimiter")
    };
    assert!(is_told("price\n", &["12,34", "7,05", "101,99"]));
    assert!(is_told("price\n", &["3.587,03", "12,50", "1.101,99"]));
    assert!(is_told("addr\n", &["10.0.0.1:801", "10.0.0.12:8080"]));
    assert!(is_told("point\n", &["1.5 1.25", "2.5 7.125"]));
    assert!(is_told("url\n", &["http://a.b/c?x=1&y=2", "http://a.b/d?x=7&y=9"]));
    assert!(is_told("d\n", &["2024-01-31 10:00:00 EST", "2024-02-01 11:30:00 EST"]));
    assert!(!is_told("Prices of today\n", &["12,34", "7,05"]) && !is_told("", &["12,34", "7,05"]));
}

#[test]
fn one_word_above_the_records_may_name_the_one_column() {
    let is_told = |found: &Finding| found.unsure.iter().any(|unsure| unsure.option == "--delimiter");
    let with_header = |file: &str, delimiter: Option<&str>| {
        let given = Given { header: Some(true), delimiter: delimiter.map(str::to_owned), ..Given::default() };
        find(&Sample::of_whole(file.as_bytes()), &given)
    };
    let prices = "price\n12,34\n13,45\n14,50\n9,99\n";
    let found = text(prices);
    assert!(is_told(&found) && found.cuts_decimals, "{}", found.describe());
    let names = "name\nSmith, John\nDoe, Ann\nLee, Bob\nRay, Tim\n";
    assert!(is_told(&text(names)) && !text(names).cuts_decimals);
    for file in [prices, names] {
        let refused = with_header(file, None).unwrap_err();
        assert!(refused.hint().is_some_and(|hint| hint.contains("--delimiter")), "{refused}");
        let found = with_header(file, Some("\t")).unwrap();
        assert_eq!((found.width, found.header_rows, found.preamble_records), (1, 1, 0));
    }
    // Names above numbers are a header, and the word is a title.
    let titled = "Sales\nid,amount\n1,2.5\n2,3.5\n3,4.5\n";
    assert!(!is_told(&text(titled)));
    assert_eq!(with_header(titled, None).unwrap().names, ["id", "amount"]);
    assert_eq!(with_header("Sales\n2019,2020\n1,2\n3,4\n5,6\n", Some(",")).unwrap().names, ["2019", "2020"]);
}

#[test]
fn years_above_years_are_values() {
    let rows = "K1002,2012,2012\nK1003,2012,2016\nK1004,2018,2019\n";
    for first in ["K1001,2019,2020\n", "K1001,2020,2019\n"] {
        assert_eq!(text(&format!("{first}{rows}")).header_rows, 0, "{first}");
    }
    assert_eq!(text("2019,2020\n2012,2012\n2012,2016\n2018,2019\n").header_rows, 0);
    let named = text(&format!("name,2019,2020\n{rows}"));
    assert_eq!((named.header_rows, named.names.join("|").as_str()), (1, "name|2019|2020"));
    let counts = text("land,2019,2020\nann,12,2012\nbob,1900,17\ncid,3,1\n");
    assert_eq!(counts.header_rows, 1);
    assert_eq!(text("alice,2019,2020\nbob,3,4\ncid,5,6\ndan,7,8\n").header_rows, 1);
}

#[test]
fn the_rest_of_a_cut_record_is_no_header_of_given_columns() {
    let file = "2285\",2285\n2286,\"Smith, 2286\",2286\n2287,\"Smith, 2287\",2287\n2288,\"Doe, 2288\",2288\n";
    let columns = |names: &[&str]| {
        let columns = Some(names.iter().map(|name| (*name).to_owned()).collect());
        find(&Sample::of_whole(file.as_bytes()), &Given { columns, ..Given::default() }).unwrap()
    };
    let found = columns(&["id", "name", "amount"]);
    assert_eq!((found.header_rows, found.preamble_records), (0, 0), "{}", found.describe());
    assert!(found.unsure.iter().all(|unsure| unsure.option != "--columns"));
}

#[test]
fn a_first_record_with_a_gap_is_told_where_no_names_follow_it() {
    let found = text(
        "\"\"\t\"+49 (35) 1499233-17\"\n\"fern\"\t\"+49 (89) 117043-5\"\n\"\"\t\"+49 (58) 1693601-7\"\n",
    );
    assert!(found.header_rows == 0 || found.is_header_unsure(), "{}", found.describe());
}
