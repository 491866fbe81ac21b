package windrow;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.serde2.Deserializer;
import org.apache.hadoop.io.Text;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.execution.datasources.text.TextFileFormat;
import org.apache.spark.sql.hive.HadoopTableReader$;
import org.apache.spark.sql.types.*;
import scala.Function1;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.runtime.AbstractFunction1;

/** Lines of text, read by one of Hive's own SerDes; the code of Spark's Hive tables makes rows. */
public class HiveText extends TextFileFormat {
    private static final StructType LINES = new StructType().add("value", "string");

    @Override
    public String toString() {
        return "HiveText";
    }

    /** Supports the types that Hive has too. */
    @Override
    public boolean supportDataType(DataType type) {
        return name(type) != null;
    }

    @Override
    public Function1 buildReader(
            SparkSession session, StructType data, StructType partition, StructType required,
            SEQ filters, scala.collection.immutable.Map options, Configuration configuration) {
        SEQ none = (SEQ) PythonUtils.toSeq(new ArrayList());
        scala.collection.immutable.Map plain =
            (scala.collection.immutable.Map) PythonUtils.toScalaMap(new HashMap());
        Properties properties = new Properties();
        scala.collection.Iterator all = options.iterator();
        while (all.hasNext()) {
            Tuple2 option = (Tuple2) all.next();
            properties.setProperty((String) option._1(), (String) option._2());
        }
        // Before version 3, Hive's own code spelt the name like this.
        String items = properties.getProperty("collection.delim");
        if (items != null) properties.setProperty("colelction.delim", items);
        // Columns are matched by position, so any names will do.
        StringBuilder names = new StringBuilder();
        StringBuilder types = new StringBuilder();
        StructField[] fields = data.fields();
        for (int i = 0; i < fields.length; i++) {
            names.append(i == 0 ? "" : ",").append("c").append(i);
            types.append(i == 0 ? "" : ":").append(name(fields[i].dataType()));
        }
        properties.setProperty("columns", names.toString());
        properties.setProperty("columns.types", types.toString());
        StructType asked = new StructType();
        for (int i = 0; i < required.fields().length; i++) {
            StructField field = required.fields()[i];
            asked = asked.add("c" + data.fieldIndex(field.name()), field.dataType());
        }
        Function1 lines = super.buildReader(
            session, LINES, partition, LINES, none, plain, configuration);
        return new Reader(lines, properties, asked);
    }

    /** Returns Hive's name of a type, with fields of structs numbered; null if Hive lacks it. */
    private static String name(DataType type) {
        if (type instanceof ArrayType) {
            String element = name(((ArrayType) type).elementType());
            return element == null ? null : "array<" + element + ">";
        }
        if (type instanceof MapType) {
            String key = name(((MapType) type).keyType());
            String value = name(((MapType) type).valueType());
            return key == null || value == null ? null : "map<" + key + "," + value + ">";
        }
        if (type instanceof StructType) {
            StringBuilder text = new StringBuilder("struct<");
            StructField[] fields = ((StructType) type).fields();
            for (int i = 0; i < fields.length; i++) {
                String field = name(fields[i].dataType());
                if (field == null) return null;
                text.append(i == 0 ? "" : ",").append("f").append(i).append(":").append(field);
            }
            return fields.length == 0 ? null : text.append(">").toString();
        }
        boolean known = type instanceof BooleanType || type instanceof ByteType
            || type instanceof ShortType || type instanceof IntegerType
            || type instanceof LongType || type instanceof FloatType
            || type instanceof DoubleType || type instanceof DecimalType
            || type instanceof StringType || type instanceof BinaryType
            || type instanceof DateType || type instanceof TimestampType;
        return known ? type.catalogString() : null;
    }

    /** Opens one file, or a range of one. */
    public static final class Reader extends AbstractFunction1 implements Serializable {
        private final Function1 lines;
        private final Properties properties;
        private final StructType asked;

        Reader(Function1 lines, Properties properties, StructType asked) {
            this.lines = lines;
            this.properties = properties;
            this.asked = asked;
        }

        @Override
        public Object apply(Object file) {
            Deserializer serde = opened();
            SEQ attributes = (SEQ) DataTypeUtils$.MODULE$.toAttributes(asked);
            List places = new ArrayList();
            for (int i = 0; i < attributes.size(); i++) {
                places.add(new Tuple2(attributes.apply(i), Integer.valueOf(i)));
            }
            return HadoopTableReader$.MODULE$.fillObject(
                new Lines((scala.collection.Iterator) lines.apply(file)), serde,
                (SEQ) PythonUtils.toSeq(places), new GenericInternalRow(places.size()), serde);
        }

        private Deserializer opened() {
            try {
                ClassLoader loader = Thread.currentThread().getContextClassLoader();
                Class found = Class.forName(properties.getProperty("serde"), true, loader);
                Deserializer serde = (Deserializer) found.newInstance();
                serde.initialize(new Configuration(false), properties);
                return serde;
            } catch (Exception error) {
                throw new IllegalStateException(
                    "SerDe " + properties.getProperty("serde") + " cannot be used: " + error);
            }
        }
    }

    /** Lines as Hive's texts, from Spark's rows of one line each. */
    private static final class Lines extends AbstractIterator {
        private final scala.collection.Iterator rows;

        Lines(scala.collection.Iterator rows) {
            this.rows = rows;
        }

        @Override
        public boolean hasNext() {
            return rows.hasNext();
        }

        @Override
        public Object next() {
            return new Text(((InternalRow) rows.next()).getUTF8String(0).getBytes());
        }
    }
}
